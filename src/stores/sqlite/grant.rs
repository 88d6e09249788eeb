//! A standing approval, written once however often it is given.

use async_trait::async_trait;
use sqlx::sqlite::SqliteConnection;

use super::claim::now_ms;
use super::writer::Write;
use crate::ports::Grant;

const GRANT: &str = concat!(
    "INSERT INTO approval_grant (session, tool, hash, granted_by, granted_at) VALUES (?1, ?2, ?3, ?4, ",
    now_ms!(),
    ") ON CONFLICT DO NOTHING"
);

#[async_trait]
impl Write for Grant {
    type Answer = ();

    async fn apply(&self, db: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        sqlx::query(GRANT)
            .bind(self.key.session.as_str())
            .bind(self.key.tool.as_str())
            .bind(&self.key.hash)
            .bind(&self.by)
            .execute(db)
            .await?;
        Ok(())
    }
}
