// Decodes the provider's body into timelines while its bytes arrive, or throws a ProviderError: for incomplete JSON, a wrong number of
// elements, or elements in another order. Elements are parsed one by one, so that a long list is never whole in memory and other requests
// run in between; their count, size and depth are checked byte by byte before.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Cell } from '../../weather/cell.ts'
import type { Timeline } from '../../weather/timeline.ts'
import { excerptOf, garbled, ProviderError } from '../errors.ts'
import {
  createElementReader,
  type Expected as ExpectedOfEach,
  locationIdOf,
  mismatch,
} from './decode-element.ts'
import { boundsFor, type ElementBounds } from './request.ts'

export type Expected = ExpectedOfEach & {
  /** The requested cells, in order. */
  readonly cells: readonly Cell[]
}

// Other requests run between the elements of a long list. A turn of the event loop for each element delayed the last cell by a tenth.
const maxMsAtOnce = 1

/**
 * The timeline of each cell in the order of the request, or the error of its element: one bad element does not affect the
 * others. Rejects with ProviderError when the whole body is unusable, and reads no further then.
 * @param body its bytes, in chunks of any size
 */
export const decodeTimelines = async (
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  expected: Expected,
): Promise<(Timeline | ProviderError)[]> => {
  const { cells, horizon } = expected
  const results: (Timeline | ProviderError)[] = []
  const read = createElementReader(expected)
  const outOfOrder = createOrder()
  let disorder: ProviderError | undefined
  let begun = performance.now()
  for await (const raw of complete(body, boundsFor(cells.length, horizon))) {
    const index = results.length
    if (performance.now() - begun > maxMsAtOnce) {
      await nextTurn()
      begun = performance.now()
    }
    disorder ??= outOfOrder(locationIdOf(raw), index)
    // Inlined: an error keeps the stack's functions alive, and they keep all that they close over.
    try {
      // The bounds reject more elements than cells earlier.
      results.push(read(raw, cells[index] as Cell))
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      results.push(error)
    }
  }
  if (results.length !== cells.length)
    throw mismatch('too_few_elements', `${results.length} elements for ${cells.length} points`)
  if (disorder) throw disorder
  return results
}

async function* complete(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  bounds: ElementBounds,
): AsyncGenerator<unknown> {
  let bytes = 0
  const counted = async function* () {
    for await (const chunk of body) {
      bytes += chunk.length
      yield chunk
    }
  }
  try {
    yield* elementsOf(counted(), bounds)
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause
    throw new ProviderError('provider_cut_off', `the provider's body is not complete JSON (${bytes} bytes)`, {
      cause,
      refused: 'damaged',
    })
  }
}

/**
 * Detects an element that is not at the position of its point in the request. The provider numbers elements 0, 1, 2 … and
 * prints all numbers but the 0; an element without a number is accepted. Coordinates can't distinguish adjacent cells, so
 * one number out of place makes every element ambiguous.
 */
const createOrder = () => {
  let numbered: boolean | undefined
  return (locationId: unknown, index: number): ProviderError | undefined => {
    const isGiven = locationId !== undefined
    if (index > 0) numbered ??= isGiven
    const fits = index === 0 ? !isGiven || locationId === 0 : numbered ? locationId === index : !isGiven
    if (fits) return undefined
    const given = isGiven ? `the location_id ${excerptOf(locationId)}` : 'no location_id'
    const expected = index === 0 || numbered ? index : 'none'
    return mismatch('wrong_place', `element ${index} has ${given}, expected ${expected}`)
  }
}

// Bytes that mean something outside of strings, by kind; 0 for all others.
const [quoting, opening, closing, parting] = [1, 2, 3, 4]
const kinds = new Uint8Array(256)
const byteOf = (character: string): number => character.charCodeAt(0)
const [quote, backslash, comma] = [byteOf('"'), byteOf('\\'), byteOf(',')]
const [openList, closeList, openObject, closeObject] = [byteOf('['), byteOf(']'), byteOf('{'), byteOf('}')]
kinds[quote] = quoting
kinds[openList] = kinds[openObject] = opening
kinds[closeList] = kinds[closeObject] = closing
kinds[comma] = parting
const blanks: ReadonlySet<number | undefined> = new Set(Buffer.from(' \t\r\n'))

/**
 * The values of a list, or the single value of another text. Lazy: an error is thrown when it is reached, and nothing after
 * it is read.
 * @param chunks of the text in UTF-8, of any size
 * @throws SyntaxError if the text is not JSON or incomplete
 * @throws ProviderError if it exceeds its bounds
 */
export async function* elementsOf(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  bounds: ElementBounds,
): AsyncGenerator<unknown> {
  let at: 'start' | 'list' | 'end' | 'single' = 'start'
  let count = 0
  const element = createElementBuffer(bounds.elementBytes)
  const endIn = createElementEnd(bounds)
  try {
    for await (const chunk of chunks) {
      let from = 0
      if (at === 'start') {
        from = afterBlanks(chunk, 0)
        if (from === chunk.length) continue
        at = chunk[from] === openList ? 'list' : 'single'
        if (at === 'list') from += 1
      }
      if (at === 'single') {
        if (endIn(chunk, from) < chunk.length) throw new SyntaxError('text after the end of the value')
        element.add(chunk, from, chunk.length)
      }
      while (at === 'list') {
        const end = endIn(chunk, from)
        element.add(chunk, from, end)
        if (end === chunk.length) break
        from = end + 1
        if (chunk[end] === closeList) at = 'end'
        else if (chunk[end] !== comma) throw new SyntaxError('a list that ends like an object')
        const text = element.take()
        if (at === 'end' && count === 0 && isBlank(text)) continue
        yield JSON.parse(text)
        count += 1
        if (at === 'list' && count === bounds.elements)
          throw garbled('too_many_elements', `the provider's body has more than ${count} elements`)
      }
      if (at === 'end' && afterBlanks(chunk, from) < chunk.length)
        throw new SyntaxError('text after the end of the list')
    }
    if (at === 'list') throw new SyntaxError(`a list that does not end after ${count} elements`)
    if (at !== 'end') yield JSON.parse(element.take())
  } finally {
    element.end()
  }
}

// Enough for most elements. A buffer of this size is reused by the next body.
const roomBytes = 64 * 1024
let spareRoom: Buffer | undefined

/** Joins the bytes of each element from its chunks. `end` when no more are added. */
const createElementBuffer = (maxBytes: number) => {
  // Most elements span two or three chunks. Copied, because a slice of a chunk would keep the whole of it alive.
  let room: Buffer | undefined
  let length = 0
  let only: Uint8Array | undefined
  const roomFor = (needed: number): Buffer => {
    if (room && room.length >= needed) return room
    const previous = room
    room = spareRoom
    spareRoom = undefined
    // Doubled, because what is bounded is five times as long as what usually comes.
    if (!room || room.length < needed)
      room = Buffer.allocUnsafeSlow(Math.max(roomBytes, Math.min(maxBytes, 2 * needed)))
    if (previous) room.set(previous.subarray(0, length))
    return room
  }
  return {
    add: (chunk: Uint8Array, from: number, to: number): void => {
      const added = to - from
      if (length + added > maxBytes)
        throw garbled('too_large', `an element of the provider's body is longer than ${maxBytes} bytes`)
      if (length === 0) only = chunk.subarray(from, to)
      else {
        const all = roomFor(length + added)
        if (only) all.set(only)
        only = undefined
        all.set(chunk.subarray(from, to), length)
      }
      length += added
    },
    take: (): string => {
      const bytes = only ? Buffer.from(only.buffer, only.byteOffset, only.byteLength) : room
      const text = bytes?.toString('utf8', 0, length) ?? ''
      length = 0
      only = undefined
      return text
    },
    end: (): void => {
      if (room?.length === roomBytes) spareRoom = room
    },
  }
}

const isBlank = (text: string): boolean => /^[ \t\r\n]*$/.test(text)

const afterBlanks = (bytes: Uint8Array, from: number): number => {
  let at = from
  while (at < bytes.length && blanks.has(bytes[at])) at += 1
  return at
}

/** Finds where the current element ends in a chunk: at a comma or bracket of the list, or not in this chunk. */
const createElementEnd = ({ depth: maxDepth, lists: maxLists }: ElementBounds) => {
  // State left by the previous chunk.
  let depth = 0
  let lists = 0
  let quoted = false
  let escaped = false

  return (chunk: Uint8Array, from: number): number => {
    const { length } = chunk
    let at = from
    for (;;) {
      for (; quoted && at < length; at++) {
        if (escaped) escaped = false
        else if (chunk[at] === backslash) escaped = true
        else if (chunk[at] === quote) quoted = false
      }
      while (at < length && kinds[chunk[at] as number] === 0) at += 1
      if (at >= length) return length
      const kind = kinds[chunk[at] as number]
      if (kind === quoting) quoted = true
      else if (kind === opening) {
        depth += 1
        lists += 1
        if (depth > maxDepth)
          throw garbled('too_deep', `an element of the provider's body has more than ${maxDepth} levels`)
        if (lists > maxLists)
          throw garbled(
            'too_many_lists',
            `an element of the provider's body has more than ${maxLists} lists and objects`,
          )
      } else if (depth === 0 && (kind === closing || kind === parting)) {
        lists = 0
        return at
      } else if (kind === closing) depth -= 1
      at += 1
    }
  }
}
