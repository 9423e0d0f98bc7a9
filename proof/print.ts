// A history as text for people: its fleet, each step, and what came of it, in order. Bodies are left out.

import type { History, HistoryEvent } from './history.ts'

export const historyText = ({ schedule, events }: History): string => {
  const { seed, store, hasProcesses, start, skews, settings, keys } = schedule
  return [
    `seed ${seed}: ${skews.length} gateways${hasProcesses ? ' as processes' : ''} on ${store} from ${new Date(start).toISOString()}, clocks off by ${skews.map(ms => `${ms / 1_000} s`).join(', ')}`,
    `settings ${JSON.stringify(settings)}`,
    `keys ${JSON.stringify(keys)}`,
    ...events.map(lineOf),
    '',
  ].join('\n')
}

const lineOf = (event: HistoryEvent): string => {
  const { seq, at, ms: _, kind, ...rest } = event
  const when = `#${seq} ${new Date(at).toISOString().slice(11, 23)}`
  if (event.kind === 'step') {
    const { do: name, ...what } = event.step
    return `${when} ${name} ${JSON.stringify(what, shortened)}`
  }
  if (event.kind === 'phase')
    return `${when} ${event.phase === 'end' ? 'all faults have ended' : 'the promised time has passed'}`
  if (event.kind !== 'answer') return `  ${when} ${kind} ${JSON.stringify(rest, shortened)}`
  const { gateway, run, key, path, status, headers, body, failure, sent, method, former } = event
  const code = /"code":"(\w+)"/.exec(body)?.[1]
  const what = failure ?? (status < 400 ? headers['cache-status'] : code) ?? ''
  return `  ${when} (sent #${sent.seq}) ${gateway}.${run} ${former ? 'former ' : ''}${key} ${method ? `${method} ` : ''}${path}: ${status}, ${headers['x-ratelimit-remaining']} of ${headers['x-ratelimit-limit']} left ${what}`
}

/** Of the requests of a load and the points of a call only how many they are; no weather; of times what people read. */
const shortened = (name: string, value: unknown): unknown => {
  if (Array.isArray(value) && name !== 'gateways') return value.length
  if (name === 'body') return String(value).length > 2_000 ? undefined : value
  return name === 'until' || name === 'arrivedAt' ? new Date(Number(value)).toISOString() : value
}
