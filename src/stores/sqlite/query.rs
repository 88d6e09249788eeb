//! SQL statements with their values, for a connection of this thread or for one of a reading thread.

use std::borrow::Cow;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Error, Params, Row, Statement, params_from_iter};

/// A statement and the values of its parameters, in order.
#[derive(Clone, Debug)]
pub(super) struct Query<'a> {
    sql: Cow<'static, str>,
    values: Vec<ToSqlOutput<'a>>,
}

/// A row as a value.
pub(super) trait FromRow: Sized + Send + 'static {
    fn from_row(row: &Row<'_>) -> Result<Self, Error>;
}

/// A value of a parameter.
pub(super) trait Bind<'a> {
    fn bind(self) -> ToSqlOutput<'a>;
}

/// A statement without values yet.
pub(super) fn query<'a>(sql: impl Into<Cow<'static, str>>) -> Query<'a> {
    Query { sql: sql.into(), values: Vec::new() }
}

impl<'a> Query<'a> {
    /// Adds the value of the next parameter.
    pub(super) fn bind(mut self, value: impl Bind<'a>) -> Self {
        self.values.push(value.bind());
        self
    }

    /// Adds SQL to the statement.
    pub(super) fn push(&mut self, sql: impl AsRef<str>) -> &mut Self {
        self.sql.to_mut().push_str(sql.as_ref());
        self
    }

    /// Adds a parameter with its value to the statement.
    pub(super) fn push_bind(&mut self, value: impl Bind<'a>) -> &mut Self {
        self.values.push(value.bind());
        self.push("?")
    }

    #[cfg(test)]
    pub(super) fn sql(&self) -> &str {
        &self.sql
    }

    /// The number of rows that it changed.
    pub(super) fn execute(&self, db: &Connection) -> Result<usize, Error> {
        self.prepared(db)?.execute(self.params())
    }

    /// All rows.
    pub(super) fn all<T: FromRow>(&self, db: &Connection) -> Result<Vec<T>, Error> {
        self.prepared(db)?.query_map(self.params(), T::from_row)?.collect()
    }

    /// The first row, if there is one.
    pub(super) fn optional<T: FromRow>(&self, db: &Connection) -> Result<Option<T>, Error> {
        self.prepared(db)?.query_map(self.params(), T::from_row)?.next().transpose()
    }

    /// The first row; an error if there is none.
    pub(super) fn one<T: FromRow>(&self, db: &Connection) -> Result<T, Error> {
        self.optional(db)?.ok_or(Error::QueryReturnedNoRows)
    }

    /// The statement with values of its own, for another thread.
    pub(super) fn into_owned(self) -> Query<'static> {
        let owned = |value| match value {
            ToSqlOutput::Borrowed(value) => ToSqlOutput::Owned(Value::try_from(value).unwrap_or(Value::Null)),
            ToSqlOutput::Owned(value) => ToSqlOutput::Owned(value),
            // No other kind is bound here, and every text is UTF-8.
            _ => ToSqlOutput::Owned(Value::Null),
        };
        Query { sql: self.sql, values: self.values.into_iter().map(owned).collect() }
    }

    /// Statements repeat all the time, so each connection keeps them prepared.
    fn prepared<'c>(&self, db: &'c Connection) -> Result<impl std::ops::DerefMut<Target = Statement<'c>>, Error> {
        db.prepare_cached(&self.sql)
    }

    fn params(&self) -> impl Params {
        params_from_iter(&self.values)
    }
}

impl<'a> Bind<'a> for &'a str {
    fn bind(self) -> ToSqlOutput<'a> {
        ToSqlOutput::Borrowed(ValueRef::Text(self.as_bytes()))
    }
}

impl<'a> Bind<'a> for &'a String {
    fn bind(self) -> ToSqlOutput<'a> {
        self.as_str().bind()
    }
}

impl<'a> Bind<'a> for &'a [u8] {
    fn bind(self) -> ToSqlOutput<'a> {
        ToSqlOutput::Borrowed(ValueRef::Blob(self))
    }
}

impl<'a> Bind<'a> for String {
    fn bind(self) -> ToSqlOutput<'a> {
        ToSqlOutput::Owned(Value::Text(self))
    }
}

impl<'a> Bind<'a> for i64 {
    fn bind(self) -> ToSqlOutput<'a> {
        ToSqlOutput::Owned(Value::Integer(self))
    }
}

impl<'a> Bind<'a> for u32 {
    fn bind(self) -> ToSqlOutput<'a> {
        i64::from(self).bind()
    }
}

impl<'a> Bind<'a> for bool {
    fn bind(self) -> ToSqlOutput<'a> {
        i64::from(self).bind()
    }
}

impl<'a, T: Bind<'a>> Bind<'a> for Option<T> {
    fn bind(self) -> ToSqlOutput<'a> {
        self.map_or(ToSqlOutput::Owned(Value::Null), Bind::bind)
    }
}

/// Rows of columns in order.
macro_rules! rows {
    ($(($($column:ident $index:literal),+))+) => {
        $(impl<$($column: rusqlite::types::FromSql + Send + 'static),+> FromRow for ($($column,)+) {
            fn from_row(row: &Row<'_>) -> Result<Self, Error> {
                Ok(($(row.get($index)?,)+))
            }
        })+
    };
}

rows! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
}
