// /events: streams of server-sent events with the status, every second, and the cells that changed, every two. All
// streams get the same, computed once. They are few, and a reader that does not keep up misses events and is dropped
// in the end, so that nothing is buffered without end.

import type { ServerResponse } from 'node:http'
import type { CellStatus } from './status-report.ts'

type StreamedCell = Pick<CellStatus, 'id' | 'state' | 'ageSeconds' | 'demand'>

export type StreamedStatus = {
  live(): Promise<object>
  cells(): { readonly cells: readonly StreamedCell[] }
  /** From then on streams are ended. */
  isDraining(): boolean
}

export type EventStreamsOptions = {
  readonly most: () => number
  readonly statusEveryMs?: number | undefined
  /** How long a reader may not take anything before it is dropped. */
  readonly stalledForMs?: number
}

const cellsEveryTicks = 2
const heartbeatEveryTicks = 15
// After which a browser connects again.
const retryMs = 3_000

type Stream = {
  readonly response: ServerResponse
  stalledSince: number | undefined
  /** It has missed changes of cells, or had none yet: the next event has all of them. */
  needsAllCells: boolean
}

export const createEventStreams = (
  status: StreamedStatus,
  { most, statusEveryMs = 1_000, stalledForMs = 10_000 }: EventStreamsOptions,
) => {
  const streams = new Set<Stream>()
  let timer: NodeJS.Timeout | undefined
  let ticks = 0
  let isTicking = false
  let sent: ReadonlyMap<string, StreamedCell> = new Map()

  const send = (stream: Stream, text: string): boolean => {
    const { response } = stream
    if (!response.writableNeedDrain) {
      stream.stalledSince = undefined
      response.write(text)
      return true
    }
    stream.stalledSince ??= performance.now()
    if (performance.now() - stream.stalledSince >= stalledForMs) response.destroy()
    return false
  }

  const sendCells = (): void => {
    const { cells, ...rest } = status.cells()
    const changed = cells.filter(cell => hasChanged(sent.get(cell.id), cell))
    sent = new Map([...sent, ...changed.map((cell): [string, StreamedCell] => [cell.id, cell])])
    const changes = eventOf('cells', { ...rest, cells: changed })
    let all: string | undefined
    for (const stream of streams) {
      if (!stream.needsAllCells && changed.length === 0) continue
      if (stream.needsAllCells) all ??= eventOf('cells', { ...rest, cells })
      stream.needsAllCells = !send(stream, stream.needsAllCells ? (all ?? '') : changes)
    }
  }

  const tick = async (): Promise<void> => {
    const isLast = status.isDraining()
    const event = eventOf('status', await status.live())
    for (const stream of streams) {
      send(stream, event)
      if (isLast) stream.response.end()
    }
    if (isLast) return
    if (ticks % cellsEveryTicks === 0) sendCells()
    if (ticks % heartbeatEveryTicks === 0) for (const stream of streams) send(stream, ': alive\n\n')
    ticks += 1
  }
  const run = (): void => {
    if (isTicking) return
    isTicking = true
    // Data that can't be sent now goes with the next event.
    tick()
      .catch(() => {})
      .finally(() => {
        isTicking = false
      })
  }
  const remove = (stream: Stream): void => {
    streams.delete(stream)
    if (streams.size > 0) return
    clearInterval(timer)
    timer = undefined
    sent = new Map()
    ticks = 0
  }

  return {
    /** Takes over the response; false where there are too many streams already. */
    add: (response: ServerResponse): boolean => {
      if (streams.size >= most()) return false
      const stream: Stream = { response, stalledSince: undefined, needsAllCells: true }
      response.once('close', () => remove(stream))
      // A reader that goes away is no error of ours.
      response.once('error', () => {})
      response.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        // So that the connection ends with the stream.
        connection: 'close',
        // A proxy would hold the events back.
        'x-accel-buffering': 'no',
      })
      response.write(`retry: ${retryMs}\n\n`)
      streams.add(stream)
      timer ??= setInterval(run, statusEveryMs).unref()
      run()
      return true
    },
  }
}

const eventOf = (name: string, data: object): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

// Age grows and demand decays all the time, which a reader can work out.
const hasChanged = (before: StreamedCell | undefined, { state, ageSeconds, demand }: StreamedCell): boolean =>
  before === undefined ||
  before.state !== state ||
  demand > before.demand ||
  demand < before.demand * 0.9 ||
  (ageSeconds === null) !== (before.ageSeconds === null) ||
  (ageSeconds ?? 0) < (before.ageSeconds ?? 0)
