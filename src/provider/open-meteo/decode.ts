// Decodes the provider's body into timelines, or throws a ProviderError: for incomplete JSON, a wrong number of elements, or elements in
// another order.

import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Cell } from '../../weather/cell.ts'
import type { Timeline } from '../../weather/timeline.ts'
import { excerptOf, ProviderError } from '../errors.ts'
import {
  createElementReader,
  type Expected as ExpectedOfEach,
  locationIdOf,
  mismatch,
} from './decode-element.ts'
import { type ElementBounds, elementsOf } from './json-elements.ts'
import { boundsFor } from './request.ts'

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
