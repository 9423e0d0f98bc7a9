// Promise 18: where there is a fallback, which has no fault and no limit in a history, an answer names the upstream that said its
// weather, and nobody is refused weather for what is wrong with the first one.

import type { Answer } from '../history.ts'
import { bodiesFor, hasSame, type WeatherBody } from './provider-body.ts'
import type { Rule } from './rule.ts'

// What the first one says or lacks. A machine that stands still makes the fallback late too.
const ofFirst = new Set([
  'provider_limited',
  'key_share_used_up',
  'provider_refused',
  'provider_denied',
  'provider_failing',
])

export const upstreamNamed: Rule = (facts, report) => {
  if (!facts.schedule.hasFallback) return
  for (const answer of facts.answers) {
    if (answer.method === 'HEAD' || !/^\/(?:weather|forecast)\//.test(answer.path)) continue
    const body = bodyOf(answer)
    if (!body) continue
    if (answer.status === 500) {
      report.saw()
      if (ofFirst.has(body.code ?? '')) report.broken(answer, `${body.code}, and the fallback has weather`)
    }
    if (answer.status !== 200 || !body.location) continue
    report.saw()
    const [, name] = /; upstream=([\w-]+)/.exec(answer.headers['cache-status'] ?? '') ?? []
    const { latitude, longitude } = body.location
    const sources = bodiesFor(facts.said, latitude, longitude).filter(each => hasSame(body, each))
    const names = new Set(sources.map(({ said }) => said.upstream))
    if (names.size > 0 && !names.has(name))
      report.broken(answer, `it names ${name}, and ${[...names].join(' and ')} said its weather`)
  }
}

type Body = WeatherBody & { location?: { latitude: number; longitude: number }; code?: string }

const bodyOf = ({ body }: Answer): Body | undefined => {
  try {
    return JSON.parse(body)
  } catch {
    // Promise 2.
    return undefined
  }
}
