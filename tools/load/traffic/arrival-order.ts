// Sorts requests by arrival. Logs are written when responses end, so neighbours are out of order; a window of requests is sorted.
// Requests that come later than the window are counted, and stay out of order.

import type { TrafficRequest } from './traffic-request.ts'

/** In requests; up to twice as many are kept in memory. */
export const defaultWindow = 50_000
// Characters of all paths in the window: long paths make the window shorter.
const maxText = 64 * 1024 * 1024

type Batches = AsyncIterable<readonly TrafficRequest[]>

/** Batches in the order of arrival. @param onLate called with the number of requests that came too late for the window */
export async function* inOrder(
  batches: Batches,
  onLate: (requests: number) => void,
  window: number = defaultWindow,
): AsyncGenerator<TrafficRequest[], void, undefined> {
  let held: TrafficRequest[] = []
  let text = 0
  let given = Number.NEGATIVE_INFINITY

  const take = (count: number): TrafficRequest[] => {
    // Stable, and linear for sorted input.
    const taken = held.sort(byArrival).slice(0, count)
    held = held.slice(count)
    text = held.reduce((sum, { path }) => sum + path.length, 0)
    given = taken.at(-1)?.at ?? given
    return taken
  }

  for await (const batch of batches) {
    const late: TrafficRequest[] = []
    for (const request of batch) {
      if (request.at < given) {
        late.push(request)
        continue
      }
      held.push(request)
      text += request.path.length
    }
    if (late.length > 0) {
      onLate(late.length)
      yield late
    }
    if (held.length >= 2 * window) yield take(held.length - window)
    else if (text > maxText) yield take(Math.ceil(held.length / 2))
  }
  if (held.length > 0) yield take(held.length)
}

const byArrival = (one: TrafficRequest, other: TrafficRequest): number => one.at - other.at

type Head = {
  readonly stream: AsyncGenerator<TrafficRequest[], void, undefined>
  /** Undefined at the end of the stream. */
  batch: TrafficRequest[] | undefined
}

/** Merges streams that are in the order of arrival; of equal instants, earlier streams come first. */
export async function* merged(
  streams: readonly AsyncGenerator<TrafficRequest[], void, undefined>[],
): AsyncGenerator<TrafficRequest[], void, undefined> {
  const heads: Head[] = streams.map(stream => ({ stream, batch: [] }))
  try {
    for (;;) {
      for (const head of heads)
        while (head.batch?.length === 0) head.batch = (await head.stream.next()).value ?? undefined
      // Up to the first end of a batch, all streams are known.
      const ends = heads.map(({ batch }) => batch?.at(-1)?.at ?? Number.POSITIVE_INFINITY)
      const end = Math.min(...ends)
      if (end === Number.POSITIVE_INFINITY) return
      const first = ends.indexOf(end)
      const parts = heads.map(({ batch = [] }, i) => {
        const later = i === first ? -1 : batch.findIndex(({ at }) => (i < first ? at > end : at >= end))
        return later < 0 ? batch : batch.slice(0, later)
      })
      for (const [i, head] of heads.entries()) head.batch = head.batch?.slice(parts[i]?.length)
      yield parts.length === 1 ? (parts[0] as TrafficRequest[]) : parts.flat().sort(byArrival)
    }
  } finally {
    for (const stream of streams) await stream.return()
  }
}
