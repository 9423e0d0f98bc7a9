// Target: pipelined requests on one connection. Each complete request gets exactly one response, in order, whatever the
// others are. What ends the connection is answered behind them: garbage by one 400; and a request with a body or an offer to
// upgrade, behind which nothing is answered.

import fc from 'fast-check'
import { cut, demand } from '../fault.ts'
import { checkAnswer } from '../http/answer-rules.ts'
import { type Cutting, converse, cuttings, type Transcript } from '../http/conversation.ts'
import { bytesWithKey, type RequestText, requestText } from '../http/request-text.ts'
import { batchesOf, several, type Target, weighted } from '../target.ts'

type Kind = keyof typeof kinds
type PipelineCase = {
  readonly items: readonly Kind[]
  readonly ending: keyof typeof endings
  readonly cutting: Cutting
}

const wrongKey = 'x-api-key: svc_live_00000000000000000000000000000000000000'
const post = { method: 'POST', target: '/api/v1/locations' }
const hello = { headers: ['content-length: 5'], body: 'hello' }
const chunked = { headers: ['transfer-encoding: chunked'] }
const weather = '/api/v1/weather/district/3026'

/** The kinds of complete requests, and the status of each. */
const kinds = {
  weather: [{ target: weather }, 200],
  forecast: [{ target: '/api/v1/forecast/division/10?days=1' }, 200],
  list: [{ target: '/api/v1/locations?type=division&limit=2' }, 200],
  point: [{ target: '/api/v1/weather/coords/23.7/90.4?lang=en' }, 200],
  zipped: [{ target: weather, headers: ['accept-encoding: gzip'] }, 200],
  brotli: [{ headers: ['accept-encoding: br'] }, 200],
  known: [{ target: '/api/v1/locations/district/3026', headers: ['if-none-match: *'] }, 304],
  head: [{ method: 'HEAD', target: weather }, 200],
  'head of nothing': [{ method: 'HEAD', target: '/nothing' }, 404],
  'wrong key': [{ key: wrongKey }, 401],
  'no key': [{ key: null }, 401],
  'bad path': [{ target: '/api/v1/nothing/%E0%A6%A2' }, 404],
  'bad encoding': [{ target: '/api/v1/weather/%zz/1' }, 400],
  'bad parameter': [{ target: '/api/v1/forecast/district/3026?days=8' }, 400],
  'no place': [{ target: '/api/v1/weather/district/1' }, 404],
  post: [post, 405],
} satisfies Record<string, readonly [RequestText, number]>

/** A request behind which the connection ends, and one that must not be answered. */
const last = (request: RequestText): string => requestText(request) + requestText({})

/** The bytes, and the allowed statuses after the responses to the complete requests; none where none follows. */
const endings = {
  nothing: ['', []],
  garbage: ['hello there\r\n\r\n', [400]],
  'garbage that is a header': ['GET / HTTP/1.1\r\nhost: x\r\nno colon\r\n\r\n', [400]],
  connect: ['CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n', [405, 400]],
  'two framings': [
    requestText({ ...post, headers: ['content-length: 3', ...chunked.headers], body: '0\r\n\r\n' }),
    [400],
  ],
  // Answered before its body is read, or refused because of it; never both.
  'chunks that turn bad': [
    requestText({ ...post, ...chunked, body: '5\r\nhello\r\nzz\r\nhello\r\n' }),
    [405, 400],
  ],
  'chunks that turn bad at once': [requestText({ ...post, ...chunked, body: 'zz\r\n' }), [405, 400]],
  'get with a body': [last(hello), [200]],
  'post with a body': [last({ ...post, ...hello }), [405]],
  'post in chunks': [last({ ...post, ...chunked, body: '5\r\nhello\r\n0\r\n\r\n' }), [405]],
  'put with a wrong key': [last({ ...hello, method: 'PUT', key: wrongKey }), [401]],
  'an offer to upgrade': [last({ headers: ['connection: upgrade', 'upgrade: h2c'] }), [200]],
  'an offer with a body': [
    last({ ...hello, headers: [...hello.headers, 'connection: upgrade', 'upgrade: websocket'] }),
    [200],
  ],
  'connection: close, then garbage': [
    `${requestText({ headers: ['connection: close'] })}hello\r\n\r\n`,
    [200],
  ],
} satisfies Record<string, readonly [string, readonly number[]]>

// Mostly few, where one more or less matters, and sometimes very many, of all kinds or of two.
const kindNames = Object.keys(kinds) as Kind[]
const some = (kind: fc.Arbitrary<Kind>) =>
  weighted([3, fc.array(kind, { minLength: 1, maxLength: 6 })], [2, several(kind, 1, 200)])
const ofTwo = fc
  .subarray(kindNames, { minLength: 2, maxLength: 2 })
  .chain(two => some(fc.constantFrom(...two)))
const endingNames = Object.keys(endings) as (keyof typeof endings)[]
const cases = fc.record<PipelineCase>({
  items: weighted([7, some(fc.constantFrom(...kindNames))], [3, ofTwo]),
  ending: fc.oneof(fc.constant('nothing' as const), fc.constantFrom(...endingNames)),
  cutting: cuttings,
})

const idOf = (at: number): string => `fuzz-${at}`
const isHead = (kind: Kind | undefined): boolean => kind === 'head' || kind === 'head of nothing'

const maxRefusals = 100
/**
 * How many requests are surely answered: the hundredth refusal is the last answer of a client that has shown no good key. A key
 * that came in the same read may be looked up still.
 */
const answeredOf = (items: readonly Kind[]): number => {
  let refusals = 0
  const last = items.findIndex(kind => kinds[kind][1] === 401 && ++refusals === maxRefusals)
  return last === -1 ? items.length : last + 1
}

const check = ({ items, ending }: PipelineCase, { answers, fault, isReset }: Transcript): void => {
  if (fault) throw fault
  for (const [i, answer] of answers.entries()) checkAnswer(answer, !isHead(items[i]))
  const statuses: readonly number[] = endings[ending][1]
  const given = answers.map(({ status }) => status).join(' ')
  const surely = answeredOf(items)
  const most = items.length + Math.min(1, statuses.length)
  const expected = surely === items.length ? most : surely
  const count = `${answers.length} answers of ${most}: ${given}`
  // The gateway closed while the client was still sending: a reset overtakes responses.
  demand(answers.length >= expected || isReset, 'a request without an answer', count)
  demand(answers.length <= most, 'more answers than requests', count)
  for (const [i, kind] of items.entries()) {
    const answer = answers[i]
    if (!answer) break
    const id = answer.headers.get('x-request-id')
    demand(id === idOf(i), 'answers out of order', `${id} in place of ${idOf(i)}: ${given}`)
    const status: number = kinds[kind][1]
    demand(
      answer.status === status,
      'another status than that request demands',
      `${answer.status} for ${kind}: ${given}`,
    )
  }
  const behind = answers[items.length]?.status
  demand(behind === undefined || statuses.includes(behind), 'another status behind the requests', given)
}

export const pipelines: Target<PipelineCase> = {
  name: 'pipelines',
  share: 2,
  checks:
    'every whole request has exactly one answer, in order; what ends the connection has one behind them',
  batches: batchesOf(cases, 100),
  atOnce: 6,
  setting: { store: 'embedded' },
  kindOf: ({ ending }) => `then ${ending}`,
  print: ({ items, ending, cutting }) =>
    `${items.length} requests (${cut(items.join(', '), 200)}), then ${ending}; ${cutting.cuts.length} cuts`,
  open: async system => ({
    run: async given => {
      const { items, ending, cutting } = given
      const text = items.map((kind, at) => {
        const request: RequestText = kinds[kind][0]
        return requestText({ ...request, headers: [...(request.headers ?? []), `x-request-id: ${idOf(at)}`] })
      })
      const transcript = await converse({
        url: system.gateway().apiUrl,
        bytes: bytesWithKey(text.join('') + endings[ending][0], system.keys[0].key),
        cutting,
        ending: ending === 'nothing' ? 'answers' : 'close',
        isHead: answer => isHead(items[answer]),
        expected: answeredOf(items),
      })
      check(given, transcript)
    },
  }),
}
