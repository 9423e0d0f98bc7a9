// Reads a line of nginx or Apache as a request: common and combined format, with a host before or durations after, and the format of
// deploy/nginx. Client addresses, users, referrers and agents are dropped. Instants are whole seconds.

import { isIP } from 'node:net'
import { InputError } from 'abohawa/common/errors.ts'
import { quoted } from 'abohawa/common/outside-text.ts'
import { hostIn, isOfHost, type Reading } from './format.ts'
import { durationOf, instantOf, known, methodOf, pathOf } from './request-line.ts'
import { heldAs, type TrafficRequest } from './traffic-request.ts'

/** `isEnd`: the instant is the end of the response, as nginx logs it with a duration; else the arrival. */
export type CommonLine = { readonly request: TrafficRequest; readonly isEnd: boolean }

// 203.0.113.7 - - [21/Nov/2026:12:00:00 +0600] "GET /x HTTP/1.1" 200 1834 "-" "curl/8" 0.005
export const quotedRequest =
  /\[(\d\d\/[A-Za-z]{3}\/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "((?:[^"\\]|\\.)*)" (\d{3}) (?:(\d+\.\d{3}) )?(\d+|-)(?=\s|$)(.*)$/s
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Undefined where the client sent no valid request, null for a request to another host. @throws InputError */
export const requestOfCommonLog = (line: string, reading: Reading): CommonLine | undefined | null => {
  const match = quotedRequest.exec(line)
  const [, time = '', sent, status, seconds, bytes, rest = ''] = match ?? []
  if (sent === undefined) throw new InputError(`${quoted(line)} is not in common or combined format`)
  const [, method, target] = /^([A-Z]{1,20}) (.*?)(?: HTTP\/[\d.]+)?$/.exec(sent) ?? []
  if (method === undefined || target === undefined) return undefined
  if (!isOfHost(reading, hostOf(target, line.slice(0, match?.index)))) return null
  const at = instantOfTime(time)
  // Some formats of nginx have `$request_time` before `$body_bytes_sent`.
  const { ms, isEnd } = durationBehind(seconds === undefined ? rest : ` ${seconds}`, at)
  return { request: requestWith(at, method, unescapedPath(target), status, bytes, ms), isEnd }
}

/** The host of a URL, or the field before client, ident and user. */
const hostOf = (target: string, before: string): string | undefined => {
  if (!target.startsWith('/')) return hostIn(target)
  const [, first = ''] = /^(\S+) \S+ \S+ \S+ $/.exec(before) ?? []
  // With a blank in the user, the first field is the client.
  return isIP(first) === 0 ? hostIn(first) : undefined
}

// 203.0.113.7 [2026-11-21T12:00:00+06:00] GET /api/v1/weather/district/3026 200 1834 0.005 127.0.0.1:8081 200 4a1c…
export const ownRequest =
  /^\S+ \[(\d{4}-\d\d-\d\dT[\d:]{8}(?:Z|[+-]\d\d:\d\d))\] (\S+) (.*) (\d{3}) (\d+) (\d+\.\d{3}) /

/** Undefined where the client sent no valid request. @throws InputError */
export const requestOfOwnNginx = (line: string): CommonLine | undefined => {
  const [, time = '', method = '', uri = '', status, bytes, seconds] = ownRequest.exec(line) ?? []
  if (status === undefined) throw new InputError(`${quoted(line)} is not in the format of deploy/nginx`)
  if (!uri.startsWith('/')) return undefined
  // nginx decoded the path, so each % was sent as %25.
  const path = unescapedPath(uri.replaceAll(/[%?#]/g, encodeURIComponent))
  const request = requestWith(instantOf(time, 'the time'), method, path, status, bytes, milliseconds(seconds))
  return { request, isEnd: true }
}

const requestWith = (
  at: number,
  method: string,
  path: string,
  status: string | undefined,
  bytes: string | undefined,
  ms: number | undefined,
): TrafficRequest =>
  known({
    at,
    method: methodOf(method),
    path: pathOf(path),
    // 304 answers only conditional requests.
    conditional: status === '304' || undefined,
    status: heldAs('status', Number(status)),
    // Apache logs an empty body as -.
    bytes: bytes === '-' ? 0 : heldAs('bytes', Number(bytes)),
    ms: durationOf(ms),
  })

/**
 * nginx logs `$request_time` in seconds with three decimals, Traefik ends with milliseconds, Apache logs `%D` in whole
 * microseconds. Several whole numbers are ambiguous, because `%I %O` are bytes.
 */
const durationBehind = (rest: string, at: number): { ms?: number; isEnd: boolean } => {
  // An unclosed quote ends with the line: a pattern that can't fail reads each character once.
  const behind = rest.replaceAll(/"(?:[^"\\]|\\.?)*(?:"|$)/gs, '')
  // `$msec` is the instant of the line.
  const seconds = behind
    .match(/(?<=^|[\s=])\d+\.\d{3}(?=\s|$)/g)
    ?.find(figure => !figure.startsWith(`${at / 1_000}.`))
  if (seconds !== undefined) return { ms: milliseconds(seconds), isEnd: true }
  const [, ofTraefik] = /\s(\d{1,12})ms$/.exec(behind.trimEnd()) ?? []
  if (ofTraefik !== undefined) return { ms: Number(ofTraefik), isEnd: false }
  const [microseconds, ...others] = behind.match(/(?<=^|[\s=])\d{1,12}(?=\s|$)/g) ?? []
  return microseconds === undefined || others.length > 0
    ? { isEnd: false }
    : { ms: Number(microseconds) / 1_000, isEnd: false }
}

const milliseconds = (seconds: string | undefined): number => Math.round(Number(seconds) * 1_000)

// nginx escapes bytes as \xE0, Apache some characters as \" and \t.
const unescapedPath = (target: string): string =>
  target.includes('\\')
    ? target.replaceAll(/\\(?:x([\da-fA-F]{2})|(.))/gu, (_, code?: string, sign?: string) =>
        code === undefined ? encodeURIComponent(signs[sign ?? ''] ?? sign ?? '') : `%${code.toUpperCase()}`,
      )
    : target
const signs: Record<string, string> = { b: '\b', n: '\n', r: '\r', t: '\t', v: '\v', f: '\f' }

let lastTime = ''
let lastRead = 0

/** Of `21/Nov/2026:12:00:00 +0600`; the last one is kept, because many lines are equal. @throws InputError */
const instantOfTime = (time: string): number => {
  if (time === lastTime) return lastRead
  const [day = '', month = '', year = '', hours, minutes, seconds, zone = ''] = time.split(/[/: ]/)
  const number = String(months.indexOf(month) + 1).padStart(2, '0')
  const instant = instantOf(
    `${year}-${number}-${day}T${hours}:${minutes}:${seconds}${zone.slice(0, 3)}:${zone.slice(3)}`,
    'the time',
  )
  lastTime = time
  lastRead = instant
  return instant
}

// Logs are written when responses end, so several seconds are mixed.
const maxSeconds = 4_096
const spreadBits = 10

/**
 * Spreads the requests of a second over it, by the van der Corput sequence: any number is spread evenly, without waiting for all
 * lines of the second.
 */
export const createSpread = (): ((line: CommonLine) => TrafficRequest) => {
  const seconds = new Map<number, number>()
  return ({ request, isEnd }) => {
    const count = seconds.get(request.at) ?? 0
    if (count === 0 && seconds.size >= maxSeconds) seconds.delete(seconds.keys().next().value as number)
    seconds.set(request.at, count + 1)
    let place = 0
    for (let bit = 0; bit < spreadBits; bit++) if ((count >> bit) & 1) place += 1_000 / 2 ** (bit + 1)
    const at = request.at + Math.floor(place)
    return { ...request, at: isEnd ? at - Math.round(request.ms ?? 0) : at }
  }
}
