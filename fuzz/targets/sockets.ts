// Target: raw bytes on a socket. Each request gets at most one response. Each response is valid HTTP/1.1 with the JSON of the
// contract, its headers repeat nothing of the request, and nothing follows the close.

import { cut, type Finding, finding, slowness } from '../finding.ts'
import { brokenRules, isLate } from '../http/answer-rules.ts'
import { converse, type Delivery, type Transcript } from '../http/conversation.ts'
import { bytesWithKey } from '../http/request-text.ts'
import type { Random } from '../random.ts'
import type { System } from '../system/system.ts'
import type { Session, Target } from '../target.ts'
import { type Shaped, shapes } from './socket-shapes.ts'
import { floodWithoutReading } from './unread-answers.ts'

type SocketCase = Shaped & { readonly shape: string; readonly delivery: Delivery }

const unread = 'answers that nobody reads'
const kinds = [...Object.keys(shapes), unread]
// As expensive as some hundred other cases.
const unreadEvery = 3_000

const generate = (random: Random, number: number): SocketCase => {
  // Every shape once, then at random.
  const shape = kinds[number] ?? (number % unreadEvery === 0 ? unread : random.pick(Object.keys(shapes)))
  const shaped = shapes[shape]?.(random) ?? { pieces: [] }
  return { shape, ...shaped, delivery: deliveryOf(random, shaped) }
}

function* smaller(given: SocketCase): Generator<SocketCase> {
  const { pieces, delivery } = given
  if (delivery.cuts.length > 0) yield { ...given, delivery: { ...delivery, cuts: [], pauseMs: 0 } }
  // The allowed statuses follow from one fault, which could be lost with a chunk.
  if (given.statuses) return
  for (let size = Math.ceil(pieces.length / 2); size >= 1; size = Math.floor(size / 2))
    for (let from = 0; from < pieces.length; from += size)
      yield { ...given, pieces: pieces.toSpliced(from, size) }
}

const open = async (system: System): Promise<Session<SocketCase>> => ({
  run: async given => {
    const [{ key }] = system.keys
    if (given.shape === unread) return floodWithoutReading(system.gateway(), key)
    const text = given.pieces.join('')
    const isHead = given.isHead ? () => true : text.includes('HEAD ') ? () => undefined : () => false
    const expected = given.statuses?.length ?? 1
    const bytes = bytesWithKey(text, key)
    return check(given, await converse(system.gateway().api, bytes, given.delivery, isHead, expected))
  },
  close: async () => {},
})

const deliveryOf = (
  random: Random,
  { statuses, ending = statuses ? 'answers' : 'quiet' }: Shaped,
): Delivery => ({
  cuts: random.chance(0.5) ? [] : Array.from({ length: random.between(1, 12) }, () => random.fraction()),
  pauseMs: random.pick([0, 0, 1, 3]),
  ending,
})

const check = (
  { statuses, most, isHead }: SocketCase,
  { answers, findings, isReset }: Transcript,
): Finding[] => {
  const found = [
    ...findings,
    ...answers.flatMap(answer => brokenRules(answer, !isHead && answer.body.length > 0)),
  ]
  for (const { status } of answers)
    if (status >= 500) found.push(finding('5xx although nothing failed', String(status)))
  const allowed = statuses?.length ?? most ?? 1
  const statusText = answers.map(({ status }) => status).join(', ')
  if (answers.length > allowed)
    found.push(finding('more answers than requests', `${statusText} for ${allowed}`))
  const because = answers.some(isLate) ? slowness : finding
  statuses?.forEach((expected, i) => {
    const status = answers[i]?.status
    // The gateway closed while the client was still sending: a reset overtakes the response.
    if (status === undefined && isReset) return
    if (status === undefined || !expected.includes(status))
      found.push(
        because(
          'another status than HTTP and the contract demand',
          `${statusText || 'none'} in place of ${expected.join(' or ')}`,
        ),
      )
  })
  return found
}

export const sockets: Target<SocketCase> = {
  name: 'sockets',
  share: 4,
  checks:
    'one right HTTP/1.1 answer for each request, none behind the close, JSON, quota headers, no 5xx, nothing of the request in a header',
  batch: 300,
  atOnce: 24,
  // Short, because some cases wait for this timeout.
  setting: { env: { ABOHAWA_SERVER__REQUEST_TIMEOUT: '1s' } },
  generate,
  shapeOf: ({ shape }) => shape,
  isAlone: ({ shape }) => shape === unread,
  smaller,
  print: ({ shape, pieces, delivery }) =>
    `${shape}, ${delivery.ending}, ${delivery.cuts.length} cuts: ${cut(pieces.join(''), 400)}`,
  open,
}
