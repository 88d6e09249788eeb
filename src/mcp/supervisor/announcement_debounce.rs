//! Debouncing of announced tool changes. Servers announce in bursts (a reference server twice within milliseconds of
//! its start), and some announce continuously.

use std::time::Duration;

use tokio::time::Instant;

/// The quiet period after an announcement before the list is requested.
const QUIET: Duration = Duration::from_millis(200);
/// The longest delay that further announcements can cause, and the minimum interval between lists.
const APART: Duration = Duration::from_secs(1);

/// The announcements since the last list.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AnnouncementDebounce {
    listed: Option<Instant>,
    /// The times of the first and the last announcement.
    announced: Option<(Instant, Instant)>,
}

impl AnnouncementDebounce {
    /// Records an announcement of the server.
    pub(super) fn announced(&mut self, now: Instant) {
        let first = self.announced.map_or(now, |(first, _)| first);
        self.announced = Some((first, now));
    }

    /// Records that the list is being requested.
    pub(super) fn listed(&mut self, now: Instant) {
        *self = Self { listed: Some(now), announced: None };
    }

    /// When the next list is due, if one is.
    pub(super) fn due(&self) -> Option<Instant> {
        let (first, last) = self.announced?;
        let due = (last + QUIET).min(first + APART);
        Some(self.listed.map_or(due, |listed| due.max(listed + APART)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The milliseconds at which the list is requested, for announcements at these milliseconds.
    fn asked_at(announcements: &[u64]) -> Vec<u64> {
        let start = Instant::now();
        let mut debounce = AnnouncementDebounce::default();
        let mut asked = Vec::new();
        for now in 0..announcements.last().map_or(0, |last| last + 5_000) {
            let at = start + Duration::from_millis(now);
            if debounce.due().is_some_and(|due| due <= at) {
                debounce.listed(at);
                asked.push(now);
            }
            if announcements.contains(&now) {
                debounce.announced(at);
            }
        }
        asked
    }

    #[test]
    fn a_burst_is_one_question_after_it_went_quiet() {
        assert_eq!(asked_at(&[0, 5, 150, 300]), [500]);
    }

    #[test]
    fn a_server_that_never_goes_quiet_is_asked_once_a_second() {
        let all_the_time: Vec<u64> = (0..40).map(|tick| tick * 100).collect();
        assert_eq!(asked_at(&all_the_time), [1000, 2000, 3000, 4000]);
    }

    #[test]
    fn nothing_announced_is_nothing_asked() {
        assert_eq!(asked_at(&[]), [0; 0]);
    }

    proptest! {
        #[test]
        fn every_announcement_is_followed_by_a_question_soon_and_questions_are_apart(
            mut announcements in proptest::collection::vec(0u64..6_000, 0..40),
        ) {
            announcements.sort_unstable();
            let asked = asked_at(&announcements);
            prop_assert!(asked.windows(2).all(|pair| pair[1] - pair[0] >= 1000), "{:?}", asked);
            for announcement in announcements {
                // The clock of this test advances once a millisecond.
                prop_assert!(asked.iter().any(|at| (announcement..=announcement + 2_001).contains(at)), "{announcement}: {asked:?}");
            }
        }
    }
}
