// The conversation: a window of chunks around the viewport, and spacers for the rest.

// --- the conversation: a window of chunks ---------------------------------------------------------------------

const talk = byId("conversation");
const pieces = () => every(".piece", talk);
const batch = +(talk?.dataset.piece ?? 20);
const keptPieces = 12;
let usual = 120;
let filling = false;

const count = () => +talk.dataset.count;
const first = () => +(pieces()[0]?.dataset.from ?? 0);
// Forms between entries do not count.
const size = piece => every(":scope > .entry", piece).length;
const behind = () => {
  const last = pieces().at(-1);
  return last ? +last.dataset.from + size(last) : 0;
};

/** Sets the height of the spacers. */
function makeRoom() {
  const drawn = pieces();
  const entries = drawn.reduce((sum, piece) => sum + size(piece), 0);
  const height = drawn.reduce((sum, piece) => sum + piece.offsetHeight, 0);
  if (entries >= 10) usual = height / entries;
  one(".empty").hidden = count() > 0;
  byId("above").style.height = `${first() * usual}px`;
  byId("below").style.height = `${Math.max(0, count() - behind()) * usual}px`;
}

const pieceAt = from => part(`${page}/entries?from=${from}&take=${take}${past && `&at=${past}`}`);

/** Changes the conversation without moving the visible part. */
function holding(change) {
  const top = box(talk).top;
  const anchor = every(".piece > .entry", talk).find(entry => box(entry).bottom > top);
  const before = anchor && box(anchor).top;
  const atEnd = isAtEnd();
  change();
  makeRoom();
  if (atEnd && behind() >= count()) toEnd();
  else if (anchor?.isConnected) talk.scrollTop += box(anchor).top - before;
}

const isAtEnd = () => talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
const toEnd = () => (talk.scrollTop = talk.scrollHeight);

/** Renders chunks near the viewport and removes distant ones. */
async function fill() {
  if (filling || !talk) return;
  filling = true;
  try {
    for (let round = 0; round < 20; round++) {
      const view = box(talk);
      const margin = view.height;
      const above = box(byId("above"));
      const below = box(byId("below"));
      const drawn = pieces();
      if (above.bottom < view.top - margin * 4 && below.top > view.bottom + margin * 4) break;
      if (above.top < view.bottom && above.bottom > view.bottom + margin) {
        await jumpInto(Math.floor((view.top - above.top) / usual));
      } else if (below.bottom > view.top && below.top < view.top - margin) {
        await jumpInto(behind() + Math.floor((view.top - below.top) / usual));
      } else if (first() > 0 && above.bottom > view.top - margin) {
        await putPiece(Math.max(0, first() - batch), byId("above").nextSibling, drawn.at(-1));
      } else if (behind() < count() && below.top < view.bottom + margin) {
        if (!(await putPiece(behind(), byId("below"), drawn[0]))) break;
      } else break;
    }
  } catch {
  } finally {
    filling = false;
  }
}

/** Inserts a chunk before an element; removes a distant one if there are too many. */
async function putPiece(from, before, far) {
  const piece = await pieceAt(from);
  const many = pieces().length >= keptPieces;
  holding(() => {
    talk.insertBefore(piece, before);
    // Keep chunks with open forms.
    if (many && !one("form", far)) far.remove();
  });
  settle(piece);
  return piece.children.length;
}

/** Jumps to a distant part of the conversation. */
async function jumpInto(index) {
  const wanted = Math.min(Math.max(0, index), Math.max(0, count() - 1));
  const piece = await pieceAt(Math.floor(wanted / batch) * batch);
  for (const drawn of pieces()) drawn.remove();
  byId("above").after(piece);
  makeRoom();
  talk.scrollTop = piece.offsetTop - talk.offsetTop + (wanted % batch) * usual;
  settle(piece);
}
