// Reads GoReplay files: payloads with a line `kind id nanoseconds [duration]` before and a line of monkeys after. Requests (kind 1)
// are joined with their responses (kind 2), without bodies.

import { InputError } from 'abohawa/common/errors.ts'
import { quoted } from 'abohawa/common/outside-text.ts'
import { cutOff } from 'abohawa/common/text-lines.ts'
import { hostIn, isOfHost, type Reading } from './format.ts'
import { durationOf, known, methodOf, ownText, pathOf, recordedOutcome, sentIn } from './request-line.ts'
import { heldAs, isInstant, type TrafficRequest } from './traffic-request.ts'

export const gorSeparator = '\n🐵🙈🙉\n'
const separator = Buffer.from(gorSeparator)
// The maximum that GoReplay copies.
const longestPayload = 5 * 1024 * 1024
// The part of a payload before its body.
const longestHead = 64 * 1024
// Requests that wait for their response.
const maxWaiting = 10_000

export async function* readGor(
  chunks: AsyncIterable<Buffer>,
  reading: Reading,
): AsyncGenerator<TrafficRequest[], void, undefined> {
  const waiting = new Map<string, TrafficRequest>()
  let done: TrafficRequest[] = []
  let line = 1

  const take = (payload: Buffer): void => {
    const { kind, id, at, ms, head } = payloadOf(payload)
    if (kind === '1') {
      const former = waiting.get(id)
      if (former) done.push(former)
      waiting.delete(id)
      const headers = headersOf(head.slice(1))
      if (!isOfHost(reading, hostIn(headers.host))) return
      waiting.set(id, requestOfHead(at, head[0] ?? '', headers, reading.nameOf))
      if (waiting.size <= maxWaiting) return
      const [oldest, request] = waiting.entries().next().value as [string, TrafficRequest]
      waiting.delete(oldest)
      done.push(request)
      return
    }
    const request = kind === '2' ? waiting.get(id) : undefined
    if (request === undefined) {
      reading.found.skippedLines += 1
      return
    }
    waiting.delete(id)
    done.push({ ...request, ...answerOf(head, ms ?? at - request.at) })
  }
  const takeSafely = (payload: Buffer): void => {
    try {
      if (payload.length > 0) take(payload)
    } catch (thrown) {
      reading.onFault(line, thrown)
    }
    line += linesIn(payload)
  }

  // The unfinished payload; the block doubles when it is full, because chunks may be small.
  let block: Buffer = Buffer.alloc(64 * 1024)
  let held = 0
  let isSkipping = false
  for await (const chunk of chunks) {
    // A chunk may end within a separator.
    let searched = Math.max(0, held - separator.length)
    if (held + chunk.length > block.length) {
      const larger = Buffer.alloc(2 * (held + chunk.length))
      block.copy(larger, 0, 0, held)
      block = larger
    }
    chunk.copy(block, held)
    let bytes = block.subarray(0, held + chunk.length)
    for (;;) {
      const end = bytes.indexOf(separator, searched)
      if (end < 0) break
      if (isSkipping) line += linesIn(bytes.subarray(0, end))
      else takeSafely(bytes.subarray(0, end))
      isSkipping = false
      line += 2
      bytes = bytes.subarray(end + separator.length)
      searched = 0
    }
    if (bytes.length > longestPayload) {
      if (!isSkipping)
        reading.onFault(line, new InputError(`a payload is longer than ${longestPayload} bytes`))
      isSkipping = true
      const kept = bytes.length - separator.length
      line += linesIn(bytes.subarray(0, kept))
      bytes = bytes.subarray(kept)
    }
    if (bytes.byteOffset > block.byteOffset) bytes.copy(block)
    held = bytes.length
    if (done.length > 0) yield done
    done = []
  }
  if (reading.failure !== undefined) reading.onFault(line, cutOff(reading.failure))
  else if (!isSkipping && held > 0) takeSafely(block.subarray(0, held))
  yield [...done, ...waiting.values()]
}

const linesIn = (bytes: Buffer): number => {
  let count = 0
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) count += 1
  return count
}

type Payload = { kind: string; id: string; at: number; ms: number | undefined; head: readonly string[] }

const firstLine = /^([123]) (\S{1,200}) (\d{10,20})(?: (-?\d{1,20}))?$/

/** @throws InputError */
const payloadOf = (payload: Buffer): Payload => {
  const end = payload.indexOf(0x0a)
  const about = payload
    .subarray(0, Math.min(longestHead, end < 0 ? payload.length : end))
    .toString('latin1')
    .trimEnd()
  const [, kind, id, nanoseconds, duration] = firstLine.exec(about) ?? []
  if (kind === undefined || id === undefined || nanoseconds === undefined || end < 0)
    throw new InputError(
      `${quoted(about)} is not the first line of a payload, such as "1 932079936fa4306fc308d67588178d17d823647c 1439818823587396305 0"`,
    )
  // Too many digits for a number.
  const at = Number(BigInt(nanoseconds) / 1_000_000n)
  if (!isInstant(at))
    throw new InputError(
      `the instant is ${nanoseconds}, expected nanoseconds since 1970, from 2000 to 2099, such as 1795672800123456789`,
    )
  const body = payload.indexOf('\r\n\r\n', end)
  const length = (body < 0 ? payload.length : body) - end - 1
  if (length > longestHead)
    throw new InputError(`a payload has ${length} bytes before its body, expected up to ${longestHead}`)
  const head = payload.subarray(end + 1, end + 1 + length).toString()
  return {
    kind,
    id: ownText(id),
    at,
    ms: Number(duration) > 0 ? Number(duration) / 1e6 : undefined,
    head: head.split('\r\n'),
  }
}

/** @throws InputError */
const requestOfHead = (
  at: number,
  requestLine: string,
  headers: Readonly<Record<string, string>>,
  nameOf: Reading['nameOf'],
): TrafficRequest => {
  const [, method, target] = /^(\S+) (.*?)(?: HTTP\/[\d.]+)?$/.exec(requestLine) ?? []
  if (method === undefined) throw new InputError(`${quoted(requestLine)} is not a request line`)
  return known({ at, method: methodOf(method), path: pathOf(target), ...sentIn(headers, nameOf) })
}

const answerOf = ([statusLine = '', ...lines]: readonly string[], ms: number): Partial<TrafficRequest> => {
  const [, status] = /^HTTP\/[\d.]+ ([1-5]\d\d)/.exec(statusLine) ?? []
  if (status === undefined) return {}
  const headers = headersOf(lines)
  const length = headers['content-length'] ?? ''
  return known({
    status: Number(status),
    ...recordedOutcome(headers['cache-status']),
    bytes: /^\d{1,12}$/.test(length) ? heldAs('bytes', Number(length)) : undefined,
    ms: durationOf(ms),
  })
}

const headersOf = (lines: readonly string[]): Record<string, string> => {
  const headers: Record<string, string> = {}
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon > 0) headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim()
  }
  return headers
}
