//! A run as it goes on: first what its journal says, then what happens, whichever process drives it.
//!
//! It watches before it reads, so that nothing falls in between; what it watched is told only where it follows on what was
//! told before, and everything else is read. It is pulled by its listener, and for one who is slow it keeps what it read last and
//! what a [`Watch`] holds: whoever falls further behind reads from the journal the facts that the watch has dropped.

use std::collections::VecDeque;
use std::task::Poll;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::teller::Teller;
use super::view::EventView;
use crate::core::run::{Recorded, Status};
use crate::gateway::problem::Problem;
use crate::ports::Update;
use crate::runner::{Lookout, News, Watch};

/// When a stream is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::gateway::runs) enum Until {
    /// With the run's ending.
    #[default]
    End,
    /// Also when the run waits for somebody.
    Rest,
}

/// What a listener is told next.
pub(super) enum Told {
    Event(Box<EventView>),
    /// The server stops, and the run goes on elsewhere or later.
    Draining,
}

pub(super) struct Tail {
    lookout: Lookout,
    teller: Teller,
    until: Until,
    /// How often the store is looked at for what other processes write.
    poll: Duration,
    stopping: CancellationToken,
    watch: Watch,
    /// Read and not told yet.
    facts: VecDeque<Recorded>,
    /// Told by a fact and not handed over yet.
    events: VecDeque<EventView>,
    /// Watched, and further on than what was told.
    ahead: Option<Recorded>,
    /// How long the journal was when the listener was told that the run waits.
    rested_at: Option<u64>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// There may be something in the store that was not read yet.
    Behind,
    /// What happens next is heard or looked for.
    Listening,
    Over,
}

impl Tail {
    /// `watch` has seen everything since before this: nothing that is missing in it is later than the journal.
    pub(super) fn new(
        lookout: Lookout,
        teller: Teller,
        until: Until,
        poll: Duration,
        stopping: CancellationToken,
        watch: Watch,
    ) -> Self {
        lookout.follow(poll);
        let (facts, events) = (VecDeque::new(), VecDeque::new());
        Self {
            lookout,
            teller,
            until,
            poll,
            stopping,
            watch,
            facts,
            events,
            ahead: None,
            rested_at: None,
            state: State::Behind,
        }
    }

    /// Whether there is nothing to be told: the listener has seen how the run ended, or all there is of one that stands so and
    /// rests.
    pub(super) async fn is_over(&mut self, status: Status) -> Result<bool, Problem> {
        self.read().await?;
        while self.events.is_empty()
            && let Some(fact) = self.facts.pop_front()
        {
            self.events = self.teller.tell(&fact);
        }
        let rests = self.until == Until::Rest && status == Status::Pending;
        Ok(self.events.is_empty() && (self.teller.has_ended() || rests))
    }

    /// What is told next; `None` when the stream is over.
    pub(super) async fn next(&mut self) -> Result<Option<Told>, Problem> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(Told::Event(event.into())));
            }
            if self.teller.has_ended() || self.state == State::Over {
                return Ok(None);
            }
            // What was read is told before the stream ends, so that nobody comes back for each single fact.
            if let Some(fact) = self.facts.pop_front() {
                self.events = self.teller.tell(&fact);
                continue;
            }
            if self.stopping.is_cancelled() {
                self.state = State::Over;
                return Ok(Some(Told::Draining));
            }
            self.hear();
            if let Some(fact) = self.ahead.take() {
                self.fill_up_to(fact).await?;
            } else if self.events.is_empty() {
                match self.state {
                    State::Behind => self.catch_up().await?,
                    State::Listening => self.listen().await,
                    State::Over => return Ok(None),
                }
            }
        }
    }

    /// Takes what was watched already, before anything is read: fragments are nowhere else.
    fn hear(&mut self) {
        let mut told = 0;
        while self.ahead.is_none()
            && let Poll::Ready(update) = self.watch.try_next()
        {
            match update {
                // Fragments of a reply that was read meanwhile are old news.
                Some(Update::Recorded(fact)) if self.teller.has_told(fact.seq) => self.events.truncate(told),
                Some(update) => {
                    let is_fact = matches!(update, Update::Recorded(_));
                    self.take(update);
                    told = if is_fact { self.events.len() } else { told };
                }
                None => {
                    self.was_laid_down();
                    return;
                }
            }
        }
    }

    fn take(&mut self, update: Update) {
        match update {
            Update::Delta(delta) => self.events.extend(self.teller.fragment(delta)),
            Update::Recorded(fact) if fact.seq > self.teller.next() => self.ahead = Some(fact),
            Update::Recorded(fact) => {
                self.events.extend(self.teller.tell(&fact));
                // What comes next is watched as well, so nothing has to be read.
                self.state = State::Listening;
            }
        }
    }

    /// Whoever takes the run up again is watched anew, before it is looked at where it stands.
    fn was_laid_down(&mut self) {
        self.watch = self.lookout.watch();
        self.lookout.follow(self.poll);
        self.state = State::Behind;
    }

    /// Reads what is missing before a fact that was watched, and no more: what was watched after it follows.
    async fn fill_up_to(&mut self, fact: Recorded) -> Result<(), Problem> {
        self.read().await?;
        self.facts.retain(|missed| missed.seq < fact.seq);
        self.facts.push_back(fact);
        Ok(())
    }

    /// Reads what was missed. If that was nothing and the run rests, says so, and holds no more of the run than its position: a
    /// run may wait for days, with many listeners.
    async fn catch_up(&mut self) -> Result<(), Problem> {
        let row = self.lookout.row().await?;
        if row.purged_at.is_some() {
            self.state = State::Over;
            return Ok(());
        }
        if self.teller.next().max(self.rested_at.unwrap_or_default()) < row.version {
            return self.read().await;
        }
        self.state = State::Listening;
        if row.status != Status::Pending {
            return Ok(());
        }
        if self.rested_at != Some(row.version) {
            self.rested_at = Some(row.version);
            self.events.extend(self.teller.rest(row.updated_at));
            if self.until == Until::Rest {
                self.state = State::Over;
            }
        }
        self.teller.release();
        Ok(())
    }

    async fn read(&mut self) -> Result<(), Problem> {
        self.facts = self.lookout.facts(self.teller.next()).await?.into();
        Ok(())
    }

    /// Waits for news of any kind.
    async fn listen(&mut self) {
        // The buffers of what was read last, which may not be needed again for long.
        self.facts.shrink_to_fit();
        self.events.shrink_to_fit();
        tokio::select! {
            news = self.watch.news() => match news {
                News::Update(update) => self.take(*update),
                News::Behind => self.state = State::Behind,
                News::Over => self.was_laid_down(),
            },
            () = self.stopping.cancelled() => {}
        }
    }
}
