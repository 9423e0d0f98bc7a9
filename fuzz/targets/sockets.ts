// Target: raw bytes on a socket. Pipelined whole requests get exactly one response each, in order, whatever comes behind them, and
// the last step has what it may have. Each response is valid HTTP/1.1 with the JSON of the contract, its headers repeat nothing of
// the request, and nothing follows the close. Responses that nobody reads must not pile up in the gateway's memory.

import { setTimeout as pause } from 'node:timers/promises'
import fc, { type Arbitrary } from 'fast-check'
import { openSocket } from '../../test/support/raw-connection.ts'
import { foundWithin } from '../../test/support/until.ts'
import { cut, demand, Fault } from '../fault.ts'
import { checkAnswer, isLate } from '../http/answer-rules.ts'
import { type Cutting, converse, cuttings } from '../http/conversation.ts'
import { bytesWithKey, requestText } from '../http/request-text.ts'
import type { GatewayProcess } from '../system/gateway-process.ts'
import { goodTarget } from '../system/health.ts'
import { batchesOf, several, type Target, weighted } from '../target.ts'
import { anyStep, requests, type Step } from './steps.ts'

/** `before`: the names of whole requests. `last` is undefined where nothing follows them. */
type Connection = {
  readonly before: readonly string[]
  readonly last: Step | undefined
  readonly cutting: Cutting
}

const unread = 'answers that nobody reads'
const alone = fc.record<Connection>({ before: fc.constant([]), last: anyStep, cutting: cuttings })
// Mostly few, where one more or less matters, and sometimes very many, of all kinds or of two.
const names = Object.keys(requests)
const some = (of: Arbitrary<string>) =>
  weighted([3, fc.array(of, { minLength: 1, maxLength: 6 })], [2, several(of, 1, 200)])
const ofTwo = fc.subarray(names, { minLength: 2, maxLength: 2 }).chain(two => some(fc.constantFrom(...two)))
const pipelined = fc.record<Connection>({
  before: weighted([7, some(fc.constantFrom(...names))], [3, ofTwo]),
  last: weighted<Step | undefined>(
    [1, fc.constant(undefined)],
    [2, anyStep.filter(({ statuses }) => !!statuses)],
  ),
  cutting: cuttings,
})
const flood: Connection = {
  before: [],
  last: { kind: unread, text: requestText({ target: goodTarget }), most: 0, ending: 'reset' },
  cutting: { cuts: [], pauseMs: 0 },
}

const [maxRefusals, maxWaiting] = [100, 100]
/**
 * How many requests are surely answered: the hundredth refusal is the last answer of a client that has shown no good key. A key
 * that came in the same read may be looked up still. Where more than a hundred wait behind a refusal, the connection may be closed.
 */
const answeredOf = (before: readonly string[]): number => {
  if (before.length > maxWaiting && requests[before[0] ?? '']?.[1] === 401) return 0
  let refusals = 0
  const last = before.findIndex(name => requests[name]?.[1] === 401 && ++refusals === maxRefusals)
  return last === -1 ? before.length : last + 1
}

/** Takes all steps on one connection and checks what comes back. @throws Fault */
export const runConnection = async (url: string, key: string, given: Connection): Promise<void> => {
  const { before, last, cutting } = given
  const { statuses, ending = 'answers' } = last ?? {}
  const texts = before.map((name, at) => {
    const [request = {}] = requests[name] ?? []
    return requestText({ ...request, headers: [...(request.headers ?? []), `x-request-id: fuzz-${at}`] })
  })
  const isHead = (answer: number): boolean | undefined => {
    const name = before[answer]
    if (name !== undefined) return requests[name]?.[0].method === 'HEAD'
    return last?.isHead || (last?.text.includes('HEAD ') ? undefined : false)
  }
  const surely = answeredOf(before)
  const isWhole = surely === before.length
  const expected = isWhole && last && (statuses || before.length === 0) ? surely + 1 : surely
  const bytes = bytesWithKey(texts.join('') + (last?.text ?? ''), key)
  const { answers, fault, isReset } = await converse({ url, bytes, cutting, ending, isHead, expected })
  if (fault) throw fault
  const shown = answers.map(({ status }) => status).join(' ')
  for (const [i, answer] of answers.entries()) {
    checkAnswer(answer, !isHead(i) && (i < before.length || statuses !== undefined || answer.body.length > 0))
    demand(answer.status < 500, '5xx although nothing failed', answer.status)
  }
  const most = before.length + (last?.most ?? 0)
  demand(answers.length <= most, 'more answers than requests', `${shown} for ${most}`)
  // The gateway closed while the client was still sending: a reset overtakes responses.
  demand(answers.length >= surely || isReset, 'a request without an answer', `${shown} for ${before.length}`)
  for (const [i, name] of before.entries()) {
    const { status, headers } = answers[i] ?? {}
    if (status === undefined) return
    const id = headers?.get('x-request-id')
    demand(id === `fuzz-${i}`, 'answers out of order', `${id} in place of fuzz-${i}: ${shown}`)
    const wanted = requests[name]?.[1]
    demand(status === wanted, 'another status than that request demands', `${status} for ${name}: ${shown}`)
  }
  if (!statuses || !isWhole || (answers.length === before.length && isReset)) return
  const isRight = statuses.includes(answers[before.length]?.status ?? 0)
  const detail = `${shown || 'none'} in place of ${statuses.join(' or ')}`
  // On a busy machine a request may take longer to come than the gateway waits, which then may close.
  const isSlow = answers.length === before.length || answers.some(isLate)
  if (!isRight) throw new Fault('another status than HTTP and the contract demand', detail, isSlow)
}

const connections = 3
const requestsEach = 20_000
const together = 500
const longestMs = 4_000
// A request that waits takes some 13 KB with its response, so that all of them would take 800 MB. The young generation of the heap
// grows by up to 96 MiB in a process that was idle.
const maxGrowthMiB = 128

/** Bounded in connections, requests and time. @throws Fault */
const floodWithoutReading = async (gateway: GatewayProcess, one: Buffer): Promise<void> => {
  const before = gateway.residentMiB()
  const deadline = performance.now() + longestMs
  const some = Buffer.concat(Array.from({ length: together }, () => one))
  const send = async (): Promise<void> => {
    const socket = openSocket(gateway.apiUrl).pause()
    for (let sent = 0; sent < requestsEach && performance.now() < deadline; sent += together) {
      socket.write(some)
      const left = Math.max(1, deadline - performance.now())
      await foundWithin(left, () => socket.writableLength === 0 || socket.destroyed)
    }
    await pause(Math.max(0, deadline - performance.now()))
    socket.destroy()
  }
  let most = before
  const watching = setInterval(() => {
    most = Math.max(most, gateway.residentMiB())
  }, 50)
  await Promise.all(Array.from({ length: connections }, send))
  clearInterval(watching)
  const growth = Math.round(most - before)
  demand(growth <= maxGrowthMiB, `${unread} pile up in memory`, `${growth} MiB more`)
}

export const sockets: Target<Connection> = {
  name: 'sockets',
  share: 5,
  checks: 'one correct HTTP/1.1 answer a request, in order, no 5xx, no request text in headers',
  batches: batchesOf(weighted([4, alone], [1, pipelined]), 300, { of: fc.constant(flood), every: 30 }),
  first: [flood],
  atOnce: 24,
  // Short, because some cases wait for this timeout.
  setting: { env: { ABOHAWA_TEST_SERVER__REQUEST_TIMEOUT: '2s' } },
  kindOf: ({ before, last }) => `${before.length > 0 ? 'pipeline, then ' : ''}${last?.kind ?? 'nothing'}`,
  print: ({ before, last, cutting: { cuts } }) =>
    `${before.length} requests (${cut(before.join(', '), 200)}), then ${last?.kind ?? 'nothing'}, ${last?.ending ?? ''}, ${cuts.length} cuts: ${cut(last?.text ?? '', 400)}`,
  open: async ({ key, gateway }) => ({
    run: async given => {
      if (given.last?.kind !== unread) await runConnection(gateway().apiUrl, key, given)
      else await floodWithoutReading(gateway(), bytesWithKey(given.last.text, key))
    },
  }),
}
