//! Copies a lab's rows from one database to another, and compares both.

use sha2::{Digest as _, Sha256};

use super::{
    DatabaseAddress, Store, StoreError,
    database::{DatabaseError, Row, Value},
    schema::{self, Table},
};

/// The copied rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Moved {
    pub tables: usize,
    pub rows: u64,
}

/// The reason why rows were not copied. The target has none of them then.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    /// The target has rows already.
    #[error("{0} has rows in the table `{1}` already; hint: name an empty database")]
    NotEmpty(DatabaseAddress, String),
    /// The rows of a table differ after they were copied.
    #[error("the {1} rows of the table `{0}` differ from those that were copied, so nothing was moved")]
    Differs(String, u64),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<DatabaseError> for MoveError {
    fn from(error: DatabaseError) -> Self {
        Self::Store(error.into())
    }
}

/// The number of a table's rows, and a sum of their SHA-256 that does not depend on their order.
#[derive(Debug, Default, PartialEq, Eq)]
struct Contents {
    rows: u64,
    sum: u128,
}

impl Contents {
    fn add(&mut self, values: &[Value<'_>]) {
        let mut hash = Sha256::new();
        for value in values {
            let (kind, bytes): (u8, &[u8]) = match value {
                Value::Null => (0, &[]),
                Value::Integer(number) => (1, &number.to_le_bytes()),
                Value::Real(number) => (2, &number.to_le_bytes()),
                Value::Text(text) => (3, text.as_bytes()),
                Value::Blob(bytes) => (4, bytes),
            };
            hash.update([kind]);
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        }
        let digest = hash.finalize();
        let mut half = [0; 16];
        half.copy_from_slice(&digest[..16]);
        self.rows += 1;
        self.sum = self.sum.wrapping_add(u128::from_le_bytes(half));
    }
}

impl Store {
    /// Copies every row to an empty database, all or none, and compares both row by row. The caller has begun a transaction of this store,
    /// so that nobody writes to it meanwhile.
    ///
    /// # Errors
    /// Returns an error when the target has rows, a database fails, or the copy differs. The target is empty then.
    pub fn copy_to(&self, target: &Self, address: &DatabaseAddress) -> Result<Moved, MoveError> {
        let tables = schema::tables();
        let mut moved = Moved {
            tables: tables.len(),
            rows: 0,
        };
        for table in &tables {
            if target.has_rows(table)? {
                return Err(MoveError::NotEmpty(address.clone(), table.name.to_owned()));
            }
        }
        let mut differs = None;
        let copied = target.all_or_nothing(|target| {
            for table in &tables {
                let contents = self.copy_table(target, table)?;
                moved.rows += contents.rows;
                if target.contents(table)? != contents {
                    differs = Some((table.name.to_owned(), contents.rows));
                    return Err(DatabaseError::Undone.into());
                }
                target.database.continue_numbers(table.name)?;
            }
            Ok(())
        });
        match (copied, differs) {
            (_, Some((table, rows))) => Err(MoveError::Differs(table, rows)),
            (copied, None) => Ok(copied.map(|()| moved)?),
        }
    }

    fn has_rows(&self, table: &Table<'_>) -> Result<bool, StoreError> {
        let query = format!("SELECT EXISTS (SELECT 1 FROM {})", table.name);
        self.row(&query, &[], |row| row.get(0))
    }

    /// Returns the number of rows in all tables.
    ///
    /// # Errors
    /// Returns an error when the store fails.
    pub fn count_rows(&self) -> Result<u64, StoreError> {
        let mut rows = 0;
        for table in schema::tables() {
            let count: i64 = self.row(&format!("SELECT count(*) FROM {}", table.name), &[], |row| {
                row.get(0)
            })?;
            rows += u64::try_from(count).unwrap_or(0);
        }
        Ok(rows)
    }

    fn copy_table(&self, target: &Self, table: &Table<'_>) -> Result<Contents, StoreError> {
        let numbers: Vec<String> = (1..=table.columns.len())
            .map(|number| format!("?{number}"))
            .collect();
        let insert = format!(
            "INSERT INTO {} ({}) VALUES ({})",
            table.name,
            table.columns.join(", "),
            numbers.join(", ")
        );
        let mut contents = Contents::default();
        self.each_row(table, |values| {
            contents.add(values);
            target.execute(&insert, values)?;
            Ok(())
        })?;
        Ok(contents)
    }

    fn contents(&self, table: &Table<'_>) -> Result<Contents, StoreError> {
        let mut contents = Contents::default();
        self.each_row(table, |values| {
            contents.add(values);
            Ok(())
        })?;
        Ok(contents)
    }

    fn each_row(
        &self,
        table: &Table<'_>,
        mut each: impl FnMut(&[Value<'_>]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let select = format!("SELECT {} FROM {}", table.columns.join(", "), table.name);
        self.database.query(&select, &[], &mut |row: &Row<'_>| {
            let values: Result<Vec<Value<'_>>, DatabaseError> =
                (0..table.columns.len()).map(|index| row.value(index)).collect();
            each(&values?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::example_draft;

    #[test]
    fn every_row_is_copied_once_and_a_database_with_rows_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let (from, to) = (
            Store::open(&path("from")).unwrap(),
            Store::open(&path("to")).unwrap(),
        );
        for digit in ["a", "b"] {
            from.runs()
                .add(&example_draft(digit.repeat(32).parse().unwrap()))
                .unwrap();
        }
        from.rollouts().add(&[], "{}", &[]).unwrap();
        let address = DatabaseAddress::File(path("to"));
        from.begin().unwrap();
        let moved = from.copy_to(&to, &address).unwrap();
        from.commit().unwrap();
        assert_eq!(moved.rows, 3);
        assert_eq!(to.runs().all().unwrap(), from.runs().all().unwrap());
        assert_eq!(to.rollouts().add(&[], "{}", &[]).unwrap(), 2, "numbers continue");
        assert!(matches!(
            from.copy_to(&to, &address),
            Err(MoveError::NotEmpty(..))
        ));
    }
}
