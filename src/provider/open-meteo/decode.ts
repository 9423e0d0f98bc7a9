// The provider's body → timelines, or a ProviderError that says what is wrong with it: no complete JSON, another number
// of elements than points asked for, elements in another order. What an element holds is for decode-element.ts.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Cell } from '../../weather/cell.ts'
import type { Timeline } from '../../weather/timeline.ts'
import { ProviderError } from '../errors.ts'
import { excerptOf } from '../excerpt.ts'
import { boundsFor } from './body-bounds.ts'
import {
  createElementReader,
  type Expected as ExpectedOfEach,
  locationIdOf,
  notAsAsked,
} from './decode-element.ts'
import { type ElementBounds, elementsOf } from './json-elements.ts'

export type Expected = ExpectedOfEach & {
  /** The cells asked for, in the order of the request. */
  readonly cells: readonly Cell[]
}

// Others are answered between the elements of a long list.
const mostMsAtOnce = 4

/**
 * For each cell in the order of the request its timeline, or what is wrong with its element: one bad element costs
 * the others nothing. Rejects with ProviderError when the body as a whole can't be used, and reads no further then.
 * @param body its bytes as they come, cut anywhere
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
    if (performance.now() - begun > mostMsAtOnce) {
      await nextTurn()
      begun = performance.now()
    }
    const index = results.length
    disorder ??= outOfOrder(locationIdOf(raw), index)
    // Not in a function of its own: an error keeps the functions it passed, and they all that they can see.
    try {
      // More elements than cells never come this far.
      results.push(read(raw, cells[index] as Cell))
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error
      results.push(error)
    }
  }
  if (results.length !== cells.length)
    throw notAsAsked('too_few_elements', `${results.length} elements for ${cells.length} points`)
  if (disorder) throw disorder
  return results
}

async function* complete(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  bounds: ElementBounds,
): AsyncGenerator<unknown> {
  let bytes = 0
  const counted = async function* () {
    for await (const piece of body) {
      bytes += piece.length
      yield piece
    }
    if (bytes === 0)
      throw new ProviderError('provider_refused', 'the provider answered 200 with an empty body')
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
 * Tells an element that does not stand where the request had its point. The provider numbers elements 0, 1, 2 … and
 * prints all numbers but the 0; one that prints none is believed. Cells that lie side by side can't be told apart by
 * their coordinates, so with one number out of place nobody knows whose weather any element is.
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
    return notAsAsked('wrong_place', `element ${index} has ${given}, expected ${expected}`)
  }
}
