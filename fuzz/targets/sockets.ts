// Target: raw bytes on a socket. Each request gets at most one response. Each response is valid HTTP/1.1 with the JSON of the
// contract, its headers repeat nothing of the request, and nothing follows the close. Clients that read no response must not make
// responses pile up in the gateway's memory.

import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import { foundWithin } from '../../test/support/until.ts'
import { cut, demand, Fault } from '../fault.ts'
import { checkAnswer, isLate } from '../http/answer-rules.ts'
import { type Cutting, converse, cuttings } from '../http/conversation.ts'
import { bytesWithKey, requestText } from '../http/request-text.ts'
import type { GatewayProcess } from '../system/gateway-process.ts'
import { goodTarget } from '../system/health.ts'
import { batchesOf, type Target } from '../target.ts'
import { anyShape, type Shaped } from './socket-shapes.ts'

type SocketCase = Shaped & { readonly kind: string; readonly cutting: Cutting }

const unread = 'answers that nobody reads'
const cases = fc.tuple(anyShape, cuttings).map(([shaped, cutting]): SocketCase => ({ ...shaped, cutting }))
const flood: SocketCase = {
  kind: unread,
  text: requestText({ target: goodTarget }),
  most: 0,
  ending: 'reset',
  cutting: { cuts: [], pauseMs: 0 },
}

/** Sends one shape and checks what comes back. @throws Fault */
export const runShape = async (url: string, key: string, given: Shaped, cutting?: Cutting): Promise<void> => {
  const { text, ending, statuses, most } = given
  const isHead = given.isHead ? () => true : text.includes('HEAD ') ? () => undefined : () => false
  const bytes = bytesWithKey(text, key)
  const { answers, fault, isReset } = await converse({
    ...{ url, bytes, ending, isHead },
    ...(cutting && { cutting }),
  })
  if (fault) throw fault
  const sent = answers.map(({ status }) => status).join(', ')
  for (const answer of answers) {
    checkAnswer(answer, !given.isHead && answer.body.length > 0)
    demand(answer.status < 500, '5xx although nothing failed', answer.status)
  }
  demand(answers.length <= most, 'more answers than requests', `${sent} for ${most}`)
  // The gateway closed while the client was still sending: a reset overtakes the response.
  if (!statuses || (answers.length === 0 && isReset)) return
  const isRight = statuses.includes(answers[0]?.status ?? 0)
  const detail = `${sent || 'none'} in place of ${statuses.join(' or ')}`
  if (!isRight)
    throw new Fault('another status than HTTP and the contract demand', detail, answers.some(isLate))
}

const connections = 3
const requestsEach = 20_000
const together = 500
const longestMs = 4_000
// A request that waits takes some 13 KB with its response, so that all of them would take 800 MB. The young generation of the heap
// grows by up to 96 MiB in a process that was idle.
const maxGrowthBytes = 128 * 1024 * 1024

/** Bounded in connections, requests and time. @throws Fault */
const floodWithoutReading = async (gateway: GatewayProcess, one: Buffer): Promise<void> => {
  const before = gateway.residentBytes()
  const deadline = performance.now() + longestMs
  const some = Buffer.concat(Array.from({ length: together }, () => one))
  const send = async (): Promise<void> => {
    const { hostname, port } = new URL(gateway.apiUrl)
    const socket = connect(Number(port), hostname).on('error', () => {})
    socket.pause()
    for (
      let sent = 0;
      sent < requestsEach && performance.now() < deadline && !socket.destroyed;
      sent += together
    ) {
      socket.write(some)
      const left = Math.max(1, deadline - performance.now())
      await foundWithin(left, () => socket.writableLength === 0 || socket.destroyed)
    }
    await pause(Math.max(0, deadline - performance.now()))
    socket.destroy()
  }
  let most = before
  const watching = setInterval(() => {
    most = Math.max(most, gateway.residentBytes())
  }, 50)
  await Promise.all(Array.from({ length: connections }, send))
  clearInterval(watching)
  demand(
    most - before <= maxGrowthBytes,
    `${unread} pile up in memory`,
    `${Math.round((most - before) / 2 ** 20)} MiB more`,
  )
}

export const sockets: Target<SocketCase> = {
  name: 'sockets',
  share: 4,
  checks:
    'one right HTTP/1.1 answer for each request, none behind the close, JSON, quota headers, no 5xx, nothing of the request in a header',
  batches: batchesOf(cases, 300, { of: fc.constant(flood), every: 30 }),
  first: [flood],
  atOnce: 24,
  // Short, because some cases wait for this timeout.
  setting: { env: { ABOHAWA_SERVER__REQUEST_TIMEOUT: '1s' } },
  kindOf: ({ kind }) => kind,
  print: ({ kind, text, ending, cutting }) =>
    `${kind}, ${ending}, ${cutting.cuts.length} cuts: ${cut(text, 400)}`,
  open: async system => ({
    run: async given => {
      const [{ key }] = system.keys
      if (given.kind === unread) await floodWithoutReading(system.gateway(), bytesWithKey(given.text, key))
      else await runShape(system.gateway().apiUrl, key, given, given.cutting)
    },
  }),
}
