// Target: pipelined requests on one connection. Each complete request gets exactly one response, in order, whatever the
// others are. What ends the connection is answered behind them: garbage by one 400; and a request with a body or an offer to
// upgrade, behind which nothing is answered.

import { cut, type Finding, finding } from '../finding.ts'
import { brokenRules, headerOf } from '../http/answer-rules.ts'
import { converse, type Delivery, type Transcript } from '../http/conversation.ts'
import { bytesWithKey, type RequestText, requestText } from '../http/request-text.ts'
import type { Random } from '../random.ts'
import type { System } from '../system/system.ts'
import type { Session, Target } from '../target.ts'

type Item = {
  readonly kind: string
  readonly text: string
  readonly status: number
  readonly isHead: boolean
}
type Ending = {
  readonly kind: string
  readonly text: string
  /** The allowed statuses after the responses to the complete requests; undefined where none follows. */
  readonly statuses?: readonly number[]
}
type PipelineCase = { readonly items: readonly Item[]; readonly ending: Ending; readonly delivery: Delivery }

const wrongKey = 'x-api-key: svc_live_00000000000000000000000000000000000000'
const post: Partial<RequestText> = { method: 'POST', target: '/api/v1/locations' }
const hello = { headers: ['content-length: 5'], body: 'hello' }
const chunked = { headers: ['transfer-encoding: chunked'] }

const list = { target: '/api/v1/locations?type=division' }

/** The kinds of complete requests, and the status of each. */
const kinds: Readonly<Record<string, readonly [Partial<RequestText>, number]>> = {
  weather: [{ target: '/api/v1/weather/district/3026' }, 200],
  forecast: [{ target: '/api/v1/forecast/division/10?days=1' }, 200],
  list: [{ target: '/api/v1/locations?type=division&limit=2' }, 200],
  point: [{ target: '/api/v1/weather/coords/23.7/90.4?lang=en' }, 200],
  zipped: [{ target: '/api/v1/weather/district/3026', headers: ['accept-encoding: gzip'] }, 200],
  brotli: [{ target: '/api/v1/locations?type=division', headers: ['accept-encoding: br'] }, 200],
  known: [{ target: '/api/v1/locations/district/3026', headers: ['if-none-match: *'] }, 304],
  head: [{ method: 'HEAD', target: '/api/v1/weather/district/3026' }, 200],
  'head of nothing': [{ method: 'HEAD', target: '/nothing' }, 404],
  'wrong key': [{ key: wrongKey }, 401],
  'no key': [{ key: null }, 401],
  'bad path': [{ target: '/api/v1/nothing/%E0%A6%A2' }, 404],
  'bad encoding': [{ target: '/api/v1/weather/%zz/1' }, 400],
  'bad parameter': [{ target: '/api/v1/forecast/district/3026?days=8' }, 400],
  'no place': [{ target: '/api/v1/weather/district/1' }, 404],
  post: [post, 405],
}

/** A request behind which the connection ends, and one that must not be answered. */
const lastRequest = (request: Partial<RequestText>, status: number): Omit<Ending, 'kind'> => ({
  text: requestText({ ...list, ...request }) + requestText(list),
  statuses: [status],
})

const endings: Readonly<Record<string, Omit<Ending, 'kind'>>> = {
  nothing: { text: '' },
  garbage: { text: 'hello there\r\n\r\n', statuses: [400] },
  'garbage that is a header': { text: 'GET / HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n', statuses: [400] },
  connect: { text: 'CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n', statuses: [405, 400] },
  'two framings': {
    text: requestText({
      ...post,
      target: '/',
      headers: ['content-length: 3', ...chunked.headers],
      body: '0\r\n\r\n',
    }),
    statuses: [400],
  },
  // Answered before its body is read, or refused because of it; never both.
  'chunks that turn bad': {
    text: requestText({ ...post, target: '/', ...chunked, body: '5\r\nhello\r\nzz\r\nhello\r\n' }),
    statuses: [405, 400],
  },
  'chunks that turn bad at once': {
    text: requestText({ ...post, target: '/', ...chunked, body: 'zz\r\n' }),
    statuses: [405, 400],
  },
  'get with a body': lastRequest(hello, 200),
  'post with a body': lastRequest({ ...post, ...hello }, 405),
  'post in chunks': lastRequest({ ...post, ...chunked, body: '5\r\nhello\r\n0\r\n\r\n' }, 405),
  'put with a wrong key': lastRequest({ ...hello, method: 'PUT', key: wrongKey }, 401),
  'an offer to upgrade': lastRequest({ headers: ['connection: upgrade', 'upgrade: h2c'] }, 200),
  'an offer with a body': lastRequest(
    { ...hello, headers: [...hello.headers, 'connection: upgrade', 'upgrade: websocket'] },
    200,
  ),
  'connection: close, then garbage': {
    text: `${requestText({ ...list, headers: ['connection: close'] })}hello\r\n\r\n`,
    statuses: [200],
  },
}

const itemOf = (kind: string, number: number, at: number): Item => {
  const [request, status] = kinds[kind] ?? [{}, 404]
  const headers = [...(request.headers ?? []), `x-request-id: ${idOf(number, at)}`]
  const text = requestText({ ...list, ...request, headers })
  return { kind, text, status, isHead: request.method === 'HEAD' }
}
const idOf = (number: number, at: number): string => `fuzz-${number}-${at}`

const generate = (random: Random, number: number): PipelineCase => {
  // Mostly few, where one more or less matters, and sometimes very many.
  const length = random.chance(0.6) ? random.between(1, 6) : random.between(1, 200)
  const names = Object.keys(kinds)
  const ends = Object.keys(endings)
  const end = ends[number % (2 * ends.length)] ?? 'nothing'
  const own = random.chance(0.3) ? random.some(names, 2) : names
  return {
    items: Array.from({ length }, (_, at) => itemOf(random.pick(own), number, at)),
    ending: { kind: end, ...(endings[end] ?? { text: '' }) },
    delivery: {
      cuts: random.chance(0.4) ? [] : Array.from({ length: random.between(1, 20) }, () => random.fraction()),
      pauseMs: random.pick([0, 0, 1, 2]),
      ending: end === 'nothing' ? 'answers' : 'close',
    },
  }
}

const maxRefusals = 100
/**
 * How many requests are surely answered: the hundredth refusal is the last answer of a client that has shown no good key. A key
 * that came in the same read may be looked up still.
 */
const answeredOf = (items: readonly Item[]): number => {
  let refusals = 0
  const last = items.findIndex(({ status }) => status === 401 && ++refusals === maxRefusals)
  return last === -1 ? items.length : last + 1
}

const check = ({ items, ending }: PipelineCase, { answers, findings, isReset }: Transcript): Finding[] => {
  const surely = answeredOf(items)
  const found = [
    ...findings,
    ...answers.flatMap((answer, i) => brokenRules(answer, !(items[i]?.isHead ?? false))),
  ]
  const statusText = answers.map(({ status }) => status).join(' ')
  const most = items.length + (ending.statuses ? 1 : 0)
  const expected = surely === items.length ? most : surely
  // The gateway closed while the client was still sending: a reset overtakes responses.
  if (answers.length < expected && !isReset)
    found.push(
      finding('a request without an answer', `${answers.length} answers of ${expected}: ${statusText}`),
    )
  if (answers.length > most)
    found.push(finding('more answers than requests', `${answers.length} answers for ${most}: ${statusText}`))
  for (const [i, { text, status }] of items.entries()) {
    const answer = answers[i]
    if (!answer) break
    const id = /x-request-id: (\S+)/.exec(text)?.[1]
    if (headerOf(answer, 'x-request-id') !== id) {
      found.push(
        finding(
          'answers out of order',
          `${headerOf(answer, 'x-request-id')} in place of ${id}: ${statusText}`,
        ),
      )
      break
    }
    if (answer.status !== status)
      found.push(
        finding(
          'another status than the request has to get',
          `${answer.status} in place of ${status} for number ${i}`,
        ),
      )
  }
  const last = answers[items.length]
  if (last && ending.statuses && !ending.statuses.includes(last.status))
    found.push(
      finding(
        'another status for what ends the connection',
        `${last.status} in place of ${ending.statuses.join(' or ')}`,
      ),
    )
  return found
}

function* smaller(given: PipelineCase): Generator<PipelineCase> {
  const { items, delivery } = given
  if (delivery.cuts.length > 0) yield { ...given, delivery: { ...delivery, cuts: [], pauseMs: 0 } }
  for (let size = Math.ceil(items.length / 2); size >= 1; size = Math.floor(size / 2))
    for (let from = 0; from < items.length; from += size)
      yield { ...given, items: items.toSpliced(from, size) }
}

const open = async (system: System): Promise<Session<PipelineCase>> => ({
  run: async given => {
    const { items, ending, delivery } = given
    const bytes = bytesWithKey(items.map(({ text }) => text).join('') + ending.text, system.keys[0].key)
    const isHead = (answer: number) => items[answer]?.isHead ?? false
    return check(given, await converse(system.gateway().api, bytes, delivery, isHead, answeredOf(items)))
  },
  close: async () => {},
})

export const pipelines: Target<PipelineCase> = {
  name: 'pipelines',
  share: 2,
  checks:
    'every whole request has exactly one answer, in order; what ends the connection has one behind them',
  batch: 100,
  atOnce: 6,
  setting: { store: 'embedded' },
  generate,
  shapeOf: ({ ending }) => `then ${ending.kind}`,
  isAlone: () => false,
  smaller,
  print: ({ items, ending, delivery }) =>
    `${items.length} requests (${cut(items.map(({ kind }) => kind).join(', '), 200)}), then ${ending.kind}; ${delivery.cuts.length} cuts`,
  open,
}
