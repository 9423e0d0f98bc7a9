// The delays of the event loop, from a CPU profile of V8: stretches without idleness, as a histogram of their length, and the
// causes of the long ones. A request that comes during a stretch waits for its end.

/** As V8 writes it; times in microseconds of the monotonic clock. */
export type CpuProfile = {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string }
    readonly children?: readonly number[]
  }[]
  readonly startTime: number
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

export type LongTurns = {
  /** By the upper bound of their length in ms: how many stretches, and their time in ms. */
  readonly byLength: readonly { readonly below: number; readonly count: number; readonly ms: number }[]
  /** In stretches of `longMs` and more: ms by cause, most first. */
  readonly byCause: readonly (readonly [cause: string, ms: number])[]
  readonly longestMs: number
  readonly busyMs: number
}

const bounds = [1, 2, 5, 10, 20, 50, Number.POSITIVE_INFINITY]
export const longMs = 2

// The innermost frame that one of these matches names the cause; the first match counts.
const causes: readonly (readonly [cause: string, frame: RegExp])[] = [
  ['garbage collection', /^\(garbage collector\)/],
  ['compression', /node:zlib|joined-gzip|content-coding/],
  ['rendering weather', /weather\/timeline-text|api\/(response-bodies|answer)/],
  ['usage by endpoint', /usage-detail/],
  ['access log', /telemetry\/(access-log|log|log-writer)/],
  ['counting units', /keys\/(meter|outage)|redis\/usage/],
  ['loading weather', /src\/(provider|cache\/(refresh-ahead|tiers))/],
  ['status and metrics', /heartbeat|status|metrics|counters|gauges|totals|history/],
  ['client of Redis', /ioredis|redis-/],
  ['requests', /src\/|fastify|find-my-way|node:_http|node:net|node:internal\/streams/],
]
const others = 'Node, the kernel'

export const longTurnsOf = (profile: CpuProfile, from: number, to: number): LongTurns => {
  const parents = new Map<number, number>()
  for (const { id, children = [] } of profile.nodes) for (const child of children) parents.set(child, id)
  const frames = new Map(
    profile.nodes.map(({ id, callFrame: { functionName, url } }) => [id, `${functionName} ${url}`]),
  )
  const causeOf = new Map<number, string>()
  const cause = (node: number): string => {
    let found = causeOf.get(node)
    if (found !== undefined) return found
    const frame = frames.get(node) ?? ''
    const parent = parents.get(node)
    const own = causes.find(([, pattern]) => pattern.test(frame))?.[0]
    // Of requests only where nothing further out says more.
    const outer = parent === undefined ? others : cause(parent)
    found = own === undefined || (own === 'requests' && outer !== others) ? outer : own
    causeOf.set(node, found)
    return found
  }

  const byLength = bounds.map(below => ({ below, count: 0, ms: 0 }))
  const byCause = new Map<string, number>()
  let [at, longestMs, busyMs] = [profile.startTime, 0, 0]
  let stretch: [node: number, ms: number][] = []
  const end = (): void => {
    const ms = stretch.reduce((sum, [, each]) => sum + each, 0)
    if (ms === 0) return
    const bucket = byLength.find(({ below }) => ms < below)
    if (bucket) {
      bucket.count += 1
      bucket.ms += ms
    }
    if (ms >= longMs)
      for (const [node, each] of stretch) byCause.set(cause(node), (byCause.get(cause(node)) ?? 0) + each)
    longestMs = Math.max(longestMs, ms)
    busyMs += ms
    stretch = []
  }
  for (const [i, node] of profile.samples.entries()) {
    const delta = profile.timeDeltas[i] ?? 0
    at += delta
    if (at < from || at > to) continue
    if (frames.get(node)?.startsWith('(idle)')) end()
    else stretch.push([node, delta / 1000])
  }
  end()
  return {
    byLength,
    byCause: [...byCause].toSorted(([, one], [, other]) => other - one),
    longestMs,
    busyMs,
  }
}
