// Text that is cut off, one sentence for each piece. Text counts as cut off when some of its box lies outside the page,
// or outside an element that hides what does not fit. What can be scrolled to is not cut off. A name that ends in an
// ellipsis because its place on a drawing is too small is not cut off when the whole of it stands elsewhere on the page.
(() => {
  const SLACK = 1.5;
  const shown = (element) => element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true });
  const hides = (value) => value === "hidden" || value === "clip";
  const scrolls = (value) => value === "auto" || value === "scroll";
  const where = (element) => {
    const name = (one) => one.tagName.toLowerCase() + (one.getAttribute("class") ? "." + one.getAttribute("class").trim().replace(/\s+/g, ".") : "");
    const path = [];
    for (let one = element; one && one !== document.body && path.length < 4; one = one.parentElement) path.unshift(name(one));
    return path.join(" > ");
  };
  const problems = [];
  const root = document.documentElement;
  if (root.scrollWidth > window.innerWidth) problems.push(`the page is ${root.scrollWidth} pixels wide in a window of ${window.innerWidth}`);

  // Pieces whose place hides them, and texts that stand somewhere as a whole.
  const elided = [];
  const whole = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.textContent.trim();
    const parent = node.parentElement;
    if (!text || parent.closest(".unseen, .skip, title, desc, style")) continue;
    // What is folded away stands there as a whole for who unfolds it; whether it does is seen when all is unfolded.
    if (!shown(parent)) { whole.add(parent.textContent.trim()).add(text); continue; }
    const range = document.createRange();
    range.selectNodeContents(node);
    const rects = [...range.getClientRects()].filter((rect) => rect.width > 0 && rect.height > 0);
    if (!rects.length) { problems.push(`no room for "${text.slice(0, 60)}" in ${where(parent)}`); continue; }
    let cut = null;
    let ellipsis = false;
    let left = Math.min(...rects.map((rect) => rect.left)), right = Math.max(...rects.map((rect) => rect.right));
    let top = Math.min(...rects.map((rect) => rect.top)), bottom = Math.max(...rects.map((rect) => rect.bottom));
    for (let box = parent; box && box !== document.body && !cut; box = box.parentElement) {
      const style = getComputedStyle(box);
      const frame = box.getBoundingClientRect();
      if (style.textOverflow === "ellipsis" && hides(style.overflowX)) ellipsis = true;
      if (hides(style.overflowX) && (left < frame.left - SLACK || right > frame.right + SLACK)) cut = box;
      if (hides(style.overflowY) && (top < frame.top - SLACK || bottom > frame.bottom + SLACK)) cut = box;
      if (scrolls(style.overflowX)) { left = Math.max(left, frame.left); right = Math.min(right, frame.right); }
      if (scrolls(style.overflowY)) { top = Math.max(top, frame.top); bottom = Math.min(bottom, frame.bottom); }
    }
    const beyond = left + window.scrollX < -SLACK || right + window.scrollX > window.innerWidth + SLACK;
    if (!cut && !beyond) whole.add(parent.textContent.trim()).add(text);
    else if (cut && ellipsis) elided.push([text, where(parent)]);
    else problems.push(`"${text.slice(0, 60)}" in ${where(parent)} is cut off by ${cut ? where(cut) : "the window"}`);
  }
  const all = [...whole].join("\n");
  for (const [text, place] of elided) {
    if (!all.includes(text.replace(/^(⇄ ?)?…?/, ""))) problems.push(`"${text.slice(0, 60)}" in ${place} ends in an ellipsis and stands nowhere as a whole`);
  }
  return [...new Set(problems)];
})()
