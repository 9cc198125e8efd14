//! A list that mostly has one entry: a pass looks at thousands of tasks, almost all of which have
//! one attempt, and a place on the heap for each would cost more than what is worked out of it.

use std::ops::{Deref, DerefMut};

/// Things in a row.
#[derive(Debug, Clone)]
pub(crate) enum Few<T> {
    /// One.
    One(T),
    /// Any other number.
    Many(Vec<T>),
}

impl<T> Deref for Few<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

impl<T> DerefMut for Few<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::One(one) => std::slice::from_mut(one),
            Self::Many(many) => many,
        }
    }
}

impl<T> FromIterator<T> for Few<T> {
    fn from_iter<I: IntoIterator<Item = T>>(things: I) -> Self {
        let mut things = things.into_iter().fuse();
        match (things.next(), things.next()) {
            (Some(one), None) => Self::One(one),
            (first, second) => Self::Many(first.into_iter().chain(second).chain(things).collect()),
        }
    }
}

impl<'a, T> IntoIterator for &'a Few<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Few<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_there_in_order() {
        for count in 0..4 {
            let mut few: Few<i32> = (0..count).collect();
            assert_eq!(few.to_vec(), (0..count).collect::<Vec<_>>());
            for thing in &mut few {
                *thing += 1;
            }
            let mut sum = 0;
            for thing in &few {
                sum += thing;
            }
            assert_eq!(sum, count * (count + 1) / 2);
        }
    }
}
