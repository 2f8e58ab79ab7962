//! Values that a PE keeps between the regions of a pool, one of each type.
//!
//! They belong to the PE's thread, so they need not be `Send`. A value may own handles of its PE,
//! and thereby the PE's states. If the states also owned the value, neither would ever be dropped.
//! So the thread owns both.

use std::{
    any::{Any, TypeId, type_name},
    cell::{Cell, RefCell},
    fmt,
    marker::PhantomData,
    ops::{Deref, DerefMut},
    rc::Rc,
};

use super::hold::{OwnerRef, ThreadBoundPe};
use crate::{Error, error::CallError};

/// The values that a PE keeps on this thread.
struct OfPe {
    owner: Rc<ThreadBoundPe>,
    slots: Vec<Slot>,
}

struct Slot {
    of: TypeId,
    /// Distinguishes it from all other slots of the thread.
    number: u64,
    /// `None` while the value is in use.
    value: Option<Box<dyn Any>>,
}

thread_local! {
    static KEPT: RefCell<Vec<OfPe>> = const { RefCell::new(Vec::new()) };
    /// The number of slots that the thread has made.
    static SLOTS: Cell<u64> = const { Cell::new(0) };
}

/// Accesses the values of the calling thread; `None` while its thread-local values are being
/// dropped. `access` drops no value, because a value may access the others when it is dropped.
fn access<R>(access: impl FnOnce(&mut Vec<OfPe>) -> R) -> Option<R> {
    KEPT.try_with(|kept| access(&mut kept.borrow_mut())).ok()
}

/// Drops the values that a PE keeps on the calling thread.
pub(crate) fn forget(owner: &ThreadBoundPe) {
    let gone = access(|kept| {
        let at = kept.iter().position(|of_pe| std::ptr::eq(&*of_pe.owner, owner))?;
        Some(kept.swap_remove(at))
    });
    drop(gone);
}

/// Drops the values on the calling thread of PEs that run no more.
#[inline]
pub(crate) fn forget_ended() {
    if access(|kept| !kept.is_empty()) == Some(true) {
        forget_ended_of_some();
    }
}

#[cold]
fn forget_ended_of_some() {
    let gone: Option<Vec<OfPe>> =
        access(|kept| kept.extract_if(.., |of_pe| of_pe.owner.is_over()).collect());
    drop(gone);
}

/// Drops all values on the calling thread.
pub(crate) fn forget_all() {
    drop(access(std::mem::take));
}

/// Takes the PE's value of this type, or makes it.
pub(crate) fn take<T: 'static, E: From<Error>>(
    owner: &Rc<ThreadBoundPe>,
    make: impl FnOnce() -> Result<T, E>,
) -> Result<Kept<T>, E> {
    let of = TypeId::of::<T>();
    let taken = access(|kept| {
        let at = kept.iter().position(|of_pe| Rc::ptr_eq(&of_pe.owner, owner));
        let at = at.unwrap_or_else(|| {
            kept.push(OfPe { owner: Rc::clone(owner), slots: Vec::new() });
            kept.len() - 1
        });
        let slots = &mut kept[at].slots;
        if let Some(slot) = slots.iter_mut().find(|slot| slot.of == of) {
            let value = slot.value.take().ok_or(CallError::InUse(type_name::<T>()))?;
            return Ok::<_, CallError>((slot.number, Some(value)));
        }
        let number = SLOTS.replace(SLOTS.get() + 1);
        slots.push(Slot { of, number, value: None });
        Ok((number, None))
    });
    let (slot, value) = taken.transpose().map_err(Error::from)?.unzip();
    let value = value.flatten().map(|value| value.downcast().expect("a slot has one type"));
    let mut kept = Kept { slot, value, on_this_thread: PhantomData };
    if kept.value.is_none() {
        kept.value = Some(Box::new(make()?));
    }
    Ok(kept)
}

/// The value that a PE keeps, while it is in use; from [`Pe::keep`](crate::Pe::keep). Dropping this
/// gives the value back to the PE.
pub struct Kept<T: 'static> {
    /// The number of its slot; `None` while the thread's values are being dropped.
    slot: Option<u64>,
    /// `None` while it is being made, and when it has been given back.
    value: Option<Box<T>>,
    on_this_thread: PhantomData<OwnerRef>,
}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("it is here until this is dropped")
    }
}

impl<T> DerefMut for Kept<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("it is here until this is dropped")
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        let mut value = self.value.take();
        // The PE that could not make it may keep nothing else.
        let idle = access(|kept| {
            let (pe, at) = kept.iter().enumerate().find_map(|(pe, of_pe)| {
                let is_its = |slot: &Slot| Some(slot.number) == self.slot;
                Some((pe, of_pe.slots.iter().position(is_its)?))
            })?;
            if value.is_some() {
                kept[pe].slots[at].value = value.take().map(|value| value as Box<dyn Any>);
                return None;
            }
            kept[pe].slots.swap_remove(at);
            kept[pe].slots.is_empty().then(|| kept.swap_remove(pe))
        });
        drop((idle, value));
    }
}

impl<T: fmt::Debug> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kept").field(&self.value).finish()
    }
}
