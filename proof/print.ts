// A history as text for people: its fleet, each step, and what came of it, in order. Bodies are left out.

import type { History, HistoryEvent } from './history.ts'
import type { Step } from './steps.ts'

export const historyText = ({ schedule, events }: History): string => {
  const { seed, store, hasProcesses, start, skews, settings, keys } = schedule
  return [
    `seed ${seed}: ${skews.length} gateways${hasProcesses ? ' as processes' : ''} on ${store} from ${new Date(start).toISOString()}, clocks off by ${skews.map(ms => `${ms / 1_000} s`).join(', ')}`,
    `settings ${JSON.stringify(settings)}`,
    `keys ${JSON.stringify(keys)}`,
    ...events.flatMap(lineOf),
    '',
  ].join('\n')
}

const lineOf = (event: HistoryEvent): string[] => {
  const when = `#${event.seq} ${new Date(event.at).toISOString().slice(11, 23)}`
  switch (event.kind) {
    case 'step':
      return [`${when} ${stepText(event.step)}`]
    case 'answer': {
      const { gateway, run, key, path, status, headers, body, failure, sent, method, former } = event
      const what = failure ?? (status < 400 ? (headers['cache-status'] ?? '') : codeIn(body))
      return [
        `  ${when} (sent #${sent.seq}) ${gateway}.${run} ${former ? 'former ' : ''}${key} ${method ? `${method} ` : ''}${path}: ${status}, ${headers['x-ratelimit-remaining']} of ${headers['x-ratelimit-limit']} left ${what}`,
      ]
    }
    case 'provider':
      return [
        `  ${when} provider: ${event.status ?? 'nothing'} for ${event.points.length} points, weight ${event.weight}`,
      ]
    case 'gateway':
      return [
        `  ${when} gateway ${event.gateway}.${event.run} ${event.what}, clock off by ${event.skewMs / 1_000} s`,
      ]
    case 'key':
      return [
        `  ${when} key ${event.key} ${event.what} ${event.tier ?? ''}${event.until === undefined ? '' : ` until ${new Date(event.until).toISOString()}`}`,
      ]
    case 'configured':
      return [`  ${when} gateway ${event.gateway} ${event.outcome} ${JSON.stringify(event.settings)}`]
    case 'purged':
      return [`  ${when} gateway ${event.gateway} purged ${event.hard ? 'hard' : 'soft'}`]
    case 'renewed':
      return [`  ${when} every gateway has the ${event.what} ${event.value}`]
    case 'phase':
      return [`${when} ${event.phase === 'end' ? 'all faults have ended' : 'the promised time has passed'}`]
    case 'ready':
      return [`  ${when} gateway ${event.gateway}: ${event.status} ${event.body}`]
  }
}

const codeIn = (body: string): string => /"code":"(\w+)"/.exec(body)?.[1] ?? ''

const stepText = (step: Step): string => {
  if (step.do === 'load')
    return `load of ${step.requests.length}${step.inTurn ? ', one after the other' : ''}`
  if (step.do === 'kill')
    return `kill ${step.gateway}${step.under ? ` ${step.under.afterMs} ms into ${step.under.requests.length} requests` : ''}`
  if (step.do === 'suspend')
    return `suspend ${step.gateway} for ${step.ms} ms under ${step.under.length} requests`
  if (step.do === 'fail-over')
    return `fail over${step.kill ? ' from a master that is killed' : ''} under ${step.under.length} requests`
  const { do: name, ...rest } = step
  return `${name} ${JSON.stringify(rest)}`
}
