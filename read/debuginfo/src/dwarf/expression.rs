//! Expressions of types: sizes, and the places of an array's elements.
//!
//! They are not evaluated, since there is no object to evaluate them for. The reader follows the dependence of their
//! values: on nothing of a run, or on some bytes of the object.

use super::Slice;
use gimli::{Encoding, Expression, Operation};

/// The knowledge about a value on the stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StackValue {
    Number(i64),
    /// An address this many bytes behind the start of the object.
    InObject(i64),
    Nothing,
}

/// The stack, and the bytes read so far.
#[derive(Default)]
struct Follower {
    stack: Vec<StackValue>,
    /// The end of the furthest bytes of the object that were read.
    reach_bytes: Option<u64>,
}

/// The value of an expression that depends on nothing of a run.
pub(crate) fn constant(expression: Expression<Slice<'_>>, encoding: Encoding) -> Option<u64> {
    match Follower::default().value(expression, encoding)? {
        StackValue::Number(number) => Some(number.cast_unsigned()),
        _ => None,
    }
}

/// The place of a member from the address of its object, which the expression finds on the stack; some compilers write
/// the place alone. `None` when it depends on more than that address.
pub(crate) fn member_offset(expression: Expression<Slice<'_>>, encoding: Encoding) -> Option<u64> {
    let follower = Follower { stack: vec![StackValue::InObject(0)], reach_bytes: None };
    match follower.value(expression, encoding)? {
        StackValue::InObject(offset) | StackValue::Number(offset) => u64::try_from(offset).ok(),
        StackValue::Nothing => None,
    }
}

/// True when an expression gives an address inside the object.
pub(crate) fn is_in_object(expression: Expression<Slice<'_>>, encoding: Encoding) -> bool {
    let mut follower = Follower::default();
    let mut operations = expression.operations(encoding);
    while let Ok(Some(operation)) = operations.next() {
        follower.take(&operation);
    }
    matches!(follower.stack.last(), Some(StackValue::InObject(_)))
}

/// The number of bytes from the object's start that an expression reads; `None` when it reads none of them. Both ways
/// of a branch count.
pub(crate) fn reach_bytes(expression: Expression<Slice<'_>>, encoding: Encoding) -> Option<u64> {
    let mut follower = Follower::default();
    let mut operations = expression.operations(encoding);
    while let Ok(Some(operation)) = operations.next() {
        follower.take(&operation);
    }
    follower.reach_bytes
}

impl Follower {
    /// The value that an expression without branches leaves on top.
    fn value(mut self, expression: Expression<Slice<'_>>, encoding: Encoding) -> Option<StackValue> {
        let mut operations = expression.operations(encoding);
        while let Some(operation) = operations.next().ok()? {
            if matches!(operation, Operation::Bra { .. } | Operation::Skip { .. }) {
                return None;
            }
            self.take(&operation);
        }
        self.stack.pop()
    }

    fn pop(&mut self) -> StackValue {
        self.stack.pop().unwrap_or(StackValue::Nothing)
    }

    fn take(&mut self, operation: &Operation<Slice<'_>>) {
        use Operation as Op;
        let pushed = match *operation {
            Op::PushObjectAddress => StackValue::InObject(0),
            Op::UnsignedConstant { value } => StackValue::Number(value.cast_signed()),
            Op::SignedConstant { value } => StackValue::Number(value),
            Op::PlusConstant { value } => {
                let left = self.pop();
                sum(left, StackValue::Number(value.cast_signed()))
            }
            Op::Plus => {
                let (right, left) = (self.pop(), self.pop());
                sum(left, right)
            }
            Op::Minus => match (self.pop(), self.pop()) {
                (StackValue::Number(right), left) => sum(left, StackValue::Number(right.wrapping_neg())),
                _ => StackValue::Nothing,
            },
            Op::Mul => match (self.pop(), self.pop()) {
                (StackValue::Number(right), StackValue::Number(left)) => {
                    StackValue::Number(left.wrapping_mul(right))
                }
                _ => StackValue::Nothing,
            },
            Op::Deref { size, .. } => {
                if let StackValue::InObject(offset) = self.pop()
                    && let Ok(offset) = u64::try_from(offset)
                {
                    self.reach_bytes = self.reach_bytes.max(offset.checked_add(size.into()));
                }
                StackValue::Nothing
            }
            Op::Pick { index } => {
                let at = self.stack.len().checked_sub(usize::from(index) + 1);
                at.and_then(|at| self.stack.get(at)).copied().unwrap_or(StackValue::Nothing)
            }
            Op::Swap => {
                let (right, left) = (self.pop(), self.pop());
                self.stack.push(right);
                left
            }
            Op::Drop | Op::Bra { .. } => {
                self.pop();
                return;
            }
            Op::Skip { .. } | Op::Nop => return,
            Op::Neg | Op::Not | Op::Abs => {
                self.pop();
                StackValue::Nothing
            }
            Op::And | Op::Or | Op::Xor | Op::Div | Op::Mod | Op::Shl | Op::Shr | Op::Shra => {
                self.pop();
                self.pop();
                StackValue::Nothing
            }
            Op::Eq | Op::Ne | Op::Lt | Op::Le | Op::Gt | Op::Ge => {
                self.pop();
                self.pop();
                StackValue::Nothing
            }
            // All other operations need registers, memory or other entries: the values below are then unknown.
            _ => {
                self.stack.clear();
                StackValue::Nothing
            }
        };
        self.stack.push(pushed);
    }
}

fn sum(left: StackValue, right: StackValue) -> StackValue {
    match (left, right) {
        (StackValue::Number(left), StackValue::Number(right)) => StackValue::Number(left.wrapping_add(right)),
        (StackValue::InObject(at), StackValue::Number(by))
        | (StackValue::Number(by), StackValue::InObject(at)) => StackValue::InObject(at.wrapping_add(by)),
        _ => StackValue::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::{constant, is_in_object, member_offset, reach_bytes};
    use gimli::{Encoding, EndianSlice, Expression, Format, LittleEndian};

    const ENCODING: Encoding = Encoding { address_size: 8, format: Format::Dwarf32, version: 5 };

    fn expression(bytes: &[u8]) -> Expression<super::Slice<'_>> {
        Expression(EndianSlice::new(bytes, LittleEndian))
    }

    #[test]
    fn a_constant_expression_has_a_value() {
        // lit5, lit8, mul, plus_uconst 2
        assert_eq!(constant(expression(&[0x35, 0x38, 0x1e, 0x23, 2]), ENCODING), Some(42));
        // push_object_address, deref
        assert_eq!(constant(expression(&[0x97, 0x06]), ENCODING), None);
        assert_eq!(constant(expression(&[]), ENCODING), None);
    }

    #[test]
    fn a_member_lies_where_its_expression_adds_to_the_object() {
        // plus_uconst 12; lit12; lit3, lit4, mul, plus
        for bytes in [&[0x23, 12][..], &[0x3c], &[0x33, 0x34, 0x1e, 0x22]] {
            assert_eq!(member_offset(expression(bytes), ENCODING), Some(12), "{bytes:x?}");
        }
        // dup, deref, lit24, minus, deref, plus: a virtual base by its offset in the table.
        assert_eq!(member_offset(expression(&[0x12, 0x06, 0x48, 0x1c, 0x06, 0x22]), ENCODING), None);
    }

    #[test]
    fn elements_lie_in_the_object_or_behind_a_pointer_in_it() {
        // push_object_address, lit1, plus: the characters of a short string of Pascal.
        assert!(is_in_object(expression(&[0x97, 0x31, 0x22]), ENCODING));
        // push_object_address, deref
        assert!(!is_in_object(expression(&[0x97, 0x06]), ENCODING));
    }

    #[test]
    fn a_descriptor_is_as_long_as_what_is_read_of_it() {
        // push_object_address, plus_uconst 56, deref: a bound in the third word of the first dimension.
        assert_eq!(reach_bytes(expression(&[0x97, 0x23, 56, 0x06]), ENCODING), Some(64));
        // The target of a pointer in it is no part of it: push_object_address, plus_uconst 8, deref, deref_size 4.
        assert_eq!(reach_bytes(expression(&[0x97, 0x23, 8, 0x06, 0x94, 4]), ENCODING), Some(16));
        // An index that is not known: push_object_address, over, lit24, mul, plus, deref.
        assert_eq!(reach_bytes(expression(&[0x97, 0x14, 0x48, 0x1e, 0x22, 0x06]), ENCODING), None);
    }
}
