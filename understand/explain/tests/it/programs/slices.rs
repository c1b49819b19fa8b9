//! Works on slices, strings, vectors and pairs of pointers, which compilers keep in two registers.

use std::any::type_name;
use std::hint::black_box;
use std::mem::{offset_of, size_of, size_of_val};

struct Item {
    key: u64,
    weight: u32,
    kind: u8,
    next: Option<Box<Item>>,
    name: String,
    values: Vec<u32>,
    place: (u32, i16),
}

struct Out {
    total: u64,
    count: u32,
    low: i16,
    marks: [u8; 6],
}

struct Shelf {
    items: Vec<Item>,
    outs: Box<[Out]>,
    title: Box<str>,
}

struct Pair<'a> {
    from: &'a Item,
    to: &'a mut Out,
}

#[derive(Clone, Copy)]
struct Cursor {
    at: *const Item,
    left: usize,
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn trace_on() {
    black_box("on");
}

#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn trace_off() {
    black_box("off");
}

fn objects<T>(all: &[T]) {
    println!("block {:p} {}", all.as_ptr(), size_of_val(all));
    for one in all {
        println!("object {} {one:p} {}", type_name::<T>(), size_of::<T>());
    }
}

fn buffer<T>(all: &[T]) {
    println!("block {:p} {}", all.as_ptr(), size_of_val(all));
    println!("buffer {:p} {}", all.as_ptr(), size_of_val(all));
}

macro_rules! parts {
    ($type:ty, $value:expr, $($member:ident)*) => {
        $(println!(
            "part {} {} {} {}",
            type_name::<$type>(),
            stringify!($member),
            offset_of!($type, $member),
            size_of_val(&$value.$member)
        );)*
    };
}

fn maps() {
    for line in std::fs::read_to_string("/proc/self/maps").unwrap().lines() {
        println!("map {line}");
    }
    let here = 0;
    println!("stack {:p}", &here);
}

#[inline(never)]
fn sum(items: &[Item]) -> u64 {
    let mut sum = 0;
    for item in items {
        sum += item.key + u64::from(item.weight);
    }
    sum
}

#[inline(never)]
fn bump(items: &mut [Item], k: u32) {
    for item in items.iter_mut() {
        item.weight = item.weight.wrapping_add(k);
        if item.kind & 1 == 0 {
            item.place.0 += 1;
        }
    }
}

#[inline(never)]
fn at(items: &[Item], indices: &[usize]) -> u64 {
    let mut sum = 0;
    for &index in indices {
        sum += items[index].key ^ u64::from(items[index].kind);
    }
    sum
}

#[inline(never)]
fn find(items: &[Item], key: u64) -> Option<&Item> {
    let (mut low, mut high) = (0, items.len());
    while low < high {
        let middle = (low + high) / 2;
        if items[middle].key < key {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    items.get(low)
}

#[inline(never)]
fn rising(items: &[Item]) -> usize {
    items.windows(2).filter(|pair| pair[0].weight <= pair[1].weight).count()
}

#[inline(never)]
fn backwards(items: &[Item], outs: &mut [Out]) {
    for (item, out) in items.iter().rev().zip(outs.iter_mut()) {
        out.total += item.key;
        out.count += 1;
        out.marks[usize::from(item.kind) % 6] = 1;
    }
}

#[inline(never)]
fn deep(items: &mut [Item], k: u32) -> u64 {
    if items.len() < 2 {
        return items.first().map_or(0, |item| item.key);
    }
    let (left, right) = items.split_at_mut(items.len() / 2);
    left[0].weight += k;
    right[0].place.1 += 1;
    deep(left, k) + deep(right, k + 1)
}

#[inline(never)]
fn letters(text: &str, letter: u8) -> usize {
    let mut count = 0;
    for byte in text.bytes() {
        if byte == letter {
            count += 1;
        }
        black_box(count);
    }
    count
}

#[inline(never)]
fn names(items: &[Item]) -> usize {
    items.iter().map(|item| letters(&item.name, b'e')).sum()
}

#[inline(never)]
fn nested(items: &[Item]) -> u64 {
    let mut sum = 0;
    for item in items {
        for value in &item.values {
            sum = black_box(sum + u64::from(*value));
        }
    }
    sum
}

#[inline(never)]
fn of_vector(items: &Vec<Item>, k: usize) -> u64 {
    items[k].key + items.iter().map(|item| u64::from(item.kind)).sum::<u64>()
}

#[inline(never)]
fn own_vector(mut items: Vec<Item>) -> Vec<Item> {
    for item in &mut items {
        item.place.1 = item.place.1.wrapping_add(2);
    }
    items[1].weight = 7;
    items
}

#[inline(never)]
fn own_box(mut outs: Box<[Out]>, k: i16) -> Box<[Out]> {
    for out in outs.iter_mut() {
        out.low ^= k;
    }
    outs[0].total = 1;
    outs
}

#[inline(never)]
fn shelf(shelf: &mut Shelf, k: usize) -> u64 {
    shelf.outs[k].count += 1;
    shelf.items[k].kind ^= 2;
    shelf.outs.iter().map(|out| out.total).sum::<u64>() + letters(&shelf.title, b'a') as u64
}

#[inline(never)]
fn pair(pair: Pair<'_>, k: u64) -> u64 {
    pair.to.total = black_box(pair.from.key + k);
    pair.to.count += pair.from.weight;
    black_box(pair.from.place.0);
    pair.to.total
}

#[inline(never)]
fn cursor(mut cursor: Cursor) -> u64 {
    let mut sum = 0;
    while cursor.left > 0 {
        unsafe {
            sum += (*cursor.at).key * 2 + u64::from((*cursor.at).kind);
            cursor.at = cursor.at.add(1);
        }
        cursor.left -= 1;
    }
    sum
}

#[inline(never)]
fn chain(items: &[Item]) -> u64 {
    let mut sum = 0;
    for item in items {
        let mut at = &item.next;
        while let Some(next) = at {
            sum += next.key;
            at = &next.next;
        }
    }
    sum
}

#[inline(never)]
fn grid(rows: &[&[Item]], column: usize) -> u64 {
    rows.iter().map(|row| row[column].key).sum()
}

#[inline(never)]
fn numbers(values: &mut [u64], k: u64) {
    for value in values.iter_mut() {
        *value = black_box(*value + k);
    }
    values[2] = k;
}

#[inline(never)]
fn best<'a>(items: &'a [Item], outs: &'a [Out]) -> (&'a Item, &'a Out) {
    let item = items.iter().max_by_key(|item| item.weight).unwrap();
    (item, outs.iter().min_by_key(|out| out.low).unwrap())
}

#[inline(never)]
fn both(items: &[Item], outs: &[Out]) -> u64 {
    let (item, out) = best(items, outs);
    item.key + u64::from(item.weight) + out.total
}

fn item(k: u64) -> Item {
    Item {
        key: k * 3,
        weight: (k * 7 % 11) as u32,
        kind: k as u8,
        next: None,
        name: format!("the name of number {k}"),
        values: (0..8).map(|n| n + k as u32).collect(),
        place: (k as u32, 1),
    }
}

fn made(count: u64) -> Vec<Item> {
    let mut items: Vec<Item> = (0..count).map(item).collect();
    objects(&items);
    for (k, own) in items.iter_mut().enumerate() {
        let next = Box::new(Item { next: Some(Box::new(item(40 + k as u64))), ..item(20 + k as u64) });
        objects(std::slice::from_ref(next.next.as_deref().unwrap()));
        objects(std::slice::from_ref(&*next));
        own.next = Some(next);
        buffer(own.name.as_bytes());
        buffer(&own.values);
    }
    items
}

fn outs(count: u64) -> Box<[Out]> {
    let outs: Box<[Out]> =
        (0..count).map(|k| Out { total: k, count: 0, low: k as i16, marks: [0; 6] }).collect();
    objects(&outs);
    outs
}

fn main() {
    let mut items = made(12);
    let mut all = outs(9);
    let mut stored = Shelf { items: made(5), outs: outs(5), title: "a shelf of many things".into() };
    buffer(stored.title.as_bytes());
    parts!(Item, items[0], key weight kind next name values place);
    parts!(Out, all[0], total count low marks);
    let mut values: Box<[u64]> = (0..10).collect();
    buffer(&values);
    let indices: Box<[usize]> = Box::new([5, 2, 7, 2, 11, 0]);
    buffer(&indices);
    maps();
    let mut total = 0;
    for k in 0..4u64 {
        println!("enter");
        trace_on();
        total += sum(&items) + at(&items, &indices) + rising(&items) as u64;
        bump(&mut items, k as u32);
        total += find(&items, 6 + k).map_or(0, |found| found.key);
        backwards(&items, &mut all);
        total += deep(&mut items, k as u32);
        total += names(&items) as u64 + nested(&items) + chain(&items);
        total += of_vector(&items, k as usize);
        items = own_vector(items);
        all = own_box(all, k as i16);
        total += shelf(&mut stored, k as usize);
        total += pair(Pair { from: &items[3], to: &mut all[k as usize] }, k);
        total += cursor(Cursor { at: items.as_ptr(), left: items.len() });
        total += grid(&[&items[..4], &stored.items[1..], &items[6..]], 2);
        numbers(&mut values, k);
        total += both(&items, &all);
        trace_off();
    }
    println!("sum {total}");
}
