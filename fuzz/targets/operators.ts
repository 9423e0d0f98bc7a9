// Target: outsiders and operators at the ops listener of a gateway. Whatever outsiders send, and however it is framed, it
// changes nothing and reads nothing; and every request of an operator has exactly its own answer, up to one that ends the connection.

import { isDeepStrictEqual } from 'node:util'
import fc, { type Arbitrary } from 'fast-check'
import { request } from 'undici'
import { demand } from '../fault.ts'
import { type Cutting, converse, cuttings, type Ending, type Transcript } from '../http/conversation.ts'
import type { Answer, IsHead } from '../http/response-reader.ts'
import { batchesOf, chance, joined, pick, type Target, words } from '../target.ts'
import { type Framing, oddFramings, wholeFramings } from './framings.ts'

/** One request: an outsider's, or one of those that operators ask. */
type Item = {
  readonly ask: keyof typeof asks | undefined
  readonly method: string
  readonly path: string
  readonly framing: Framing
  /** Whether every reader of HTTP agrees where it ends. */
  readonly isWhole: boolean
  readonly payload: string
}
/** What one of them sends on one connection. */
type Talk = {
  readonly who: 'outsider' | 'operator'
  readonly items: readonly Item[]
  readonly cutting: Cutting
  readonly ending: Ending
}
/** `atOnce`: whether all of them talk at once. */
type OperatorsCase = { readonly talks: readonly Talk[]; readonly atOnce: boolean }

const token = 'fuzz-0123456789-abcdefghijklmnopqrstuv'
const auth = `authorization: Bearer ${token}`
const [victimPlaceholder, ownPlaceholder] = ['<VICTIM>', '<OWN>']
const bodiless = words('GET HEAD DELETE OPTIONS')
const revoke = `/keys/${victimPlaceholder}/revoke`

/** Bytes that do something if they are read as a request, by themselves or with the token of the next caller. */
const payload = joined(
  pick('', '', '', '\r\n', '0\r\n\r\n'),
  pick(`POST ${revoke}`, `POST ${revoke}`, 'POST /cache/purge', 'GET /livez', `GET /keys/${ownPlaceholder}`),
  ' HTTP/1.1\r\n',
  // A second host would be refused: what comes next has one of its own.
  pick('x: ', 'x: ', 'host: 127.0.0.1\r\n\r\n', 'content-length: 400\r\nhost: 127.0.0.1\r\n\r\n'),
)

type Asked = {
  readonly line: string
  readonly content?: string
  readonly statuses: readonly number[]
  readonly has?: string
}
/** What operators ask: a unique mark or number is in the answer. */
const asks = {
  'a wrong cell': mark => ({ line: `GET /cache/cell?of=${mark}`, statuses: [400], has: mark }),
  'a key': () => ({ line: `GET /keys/${ownPlaceholder}`, statuses: [200], has: `"id":"${ownPlaceholder}"` }),
  'the head of a key': () => ({ line: `HEAD /keys/${ownPlaceholder}`, statuses: [200] }),
  'whether it is live': () => ({ line: 'GET /livez', statuses: [200], has: '"live"' }),
  'another limit': (_mark, number) => ({
    line: `POST /keys/${ownPlaceholder}/limit`,
    content: `{"limit":${number}}`,
    statuses: [200],
    has: `"id":"${ownPlaceholder}"`,
  }),
  'a wrong purge': mark => ({
    line: 'POST /cache/purge',
    content: `{"scope":"${mark}"}`,
    statuses: [400],
    has: mark,
  }),
  'a purge of nonsense': (_mark, _number, payload) => ({
    line: 'POST /cache/purge',
    content: payload,
    statuses: [400],
    has: 'the body ',
  }),
  'a body with DELETE': () => ({
    line: 'DELETE /cache/warm',
    content: 'x',
    statuses: [400],
    has: 'DELETE request has a body',
  }),
} satisfies Record<string, (mark: string, number: number, payload: string) => Asked>

const itemsOf = (isWhole: boolean, ask: Arbitrary<Item['ask']>): Arbitrary<Item> =>
  fc.record({
    ask,
    method: pick(...bodiless, 'POST', 'PUT'),
    path: pick('/status', '/keys', revoke, '/cells', '/nothing', '/livez'),
    framing: isWhole ? wholeFramings : oddFramings,
    isWhole: fc.constant(isWhole),
    payload,
  })
const talksOf = (who: Talk['who'], item: Arbitrary<Item>, ...endings: Ending[]): Arbitrary<Talk> =>
  fc.record({
    who: fc.constant(who),
    items: fc.array(item, { minLength: 1, maxLength: 4 }),
    cutting: cuttings,
    ending: pick(...endings),
  })
const nothing = fc.constant(undefined)
const outsiders = talksOf(
  'outsider',
  fc.oneof(itemsOf(true, nothing), itemsOf(false, nothing)),
  ...(['quiet', 'quiet', 'half-close', 'reset'] as const),
)
const askNames = Object.keys(asks) as (keyof typeof asks)[]
const operatorTalks = talksOf('operator', itemsOf(true, pick(...askNames)), 'answers')
const cases: Arbitrary<OperatorsCase> = fc
  .tuple(
    fc.array(outsiders, { minLength: 1, maxLength: 3 }),
    fc.array(operatorTalks, { maxLength: 3 }),
    chance(30),
  )
  .map(([first, then, atOnce]) => ({ talks: [...first, ...then], atOnce }))

const textOf = (line: string, headers: readonly string[], body = '', version = 'HTTP/1.1'): string =>
  [`${line} ${version}`, 'host: 127.0.0.1', ...headers, '', body].join('\r\n')

const shown = (answers: readonly Answer[]): string => answers.map(({ status }) => status).join(' ')
const refusals = [400, 401, 403, 404, 405, 408, 413, 415, 431, 503]
const secrets = ['opmark', '"pid"', 'svc_live_']

/** Whether the last answer ends the connection, as behind a body that the listener does not read: those behind it are not taken. */
const endsConnection = (answers: readonly Answer[]): boolean =>
  answers.at(-1)?.headers.get('connection') === 'close'

const checkOutsider = (
  items: readonly Item[],
  ending: Ending,
  { answers, fault, isReset }: Transcript,
  ownId: string,
): void => {
  const isClear = items.every(({ isWhole }) => isWhole)
  // What it breaks off itself may get no answer. After an odd HEAD it is unknown which answers have a body.
  const isUnclear = ending === 'reset' || (!isClear && items.some(({ method }) => method === 'HEAD'))
  if (fault && !isUnclear) throw fault
  const count = `${shown(answers)} for ${items.length} of an outsider`
  demand(answers.length <= items.length, 'more answers than requests', count)
  const isShort = answers.length < items.length && !isReset && !endsConnection(answers)
  demand(!isClear || !isShort, 'a request without an answer', count)
  for (const [i, { status, body }] of answers.entries()) {
    const { method = '', path = '' } = items[i] ?? {}
    // What needs no token is answered, unless it has a body.
    const isOpen = path === '/livez' && !bodiless.includes(method)
    const isRefused = refusals.includes(status) || (isOpen && status === 200)
    demand(isRefused, 'an outsider is answered', `${status} for ${method} ${path}: ${body}`)
    const secret = [...secrets, ownId].find(one => body.includes(one))
    demand(secret === undefined, 'an outsider reads what is for operators', `${secret} in ${status}: ${body}`)
  }
}

const checkOperator = (items: readonly Asked[], { answers, fault }: Transcript): void => {
  if (fault) throw fault
  const isCounted =
    answers.length === items.length || (answers.length < items.length && endsConnection(answers))
  demand(
    isCounted,
    'an operator has not one answer for each request',
    `${shown(answers)} for ${items.length}`,
  )
  for (const [i, { status, body }] of answers.entries()) {
    const { line, statuses, has } = items[i] as Asked
    const isOwn = statuses.includes(status) && (has === undefined || body.includes(has))
    demand(
      isOwn,
      "an operator has not its request's answer",
      `${status} for ${line}, without ${has}: ${body}`,
    )
  }
}

export const operators: Target<OperatorsCase> = {
  name: 'operators',
  share: 2,
  checks:
    'an outsider at the ops listener changes and reads nothing, however its bodies are framed; each request of an operator has exactly its own answer, up to one that ends the connection',
  batches: batchesOf(cases, 50),
  // One after the other, so that what a case leaves on a connection is found by itself.
  atOnce: 1,
  setting: { moreKeys: 2, env: { ABOHAWA_OPS__TOKEN: token } },
  kindOf: ({ talks: [first] }) => first?.items[0]?.framing.name ?? 'nobody',
  print: ({ talks, atOnce }) =>
    `${atOnce ? 'at once: ' : ''}${talks
      .map(({ who, items, ending }) => {
        const all = items.map(
          ({ ask, method, path, payload, framing }) =>
            `${ask ?? `${method} ${path} (${payload})`} by ${framing.name}`,
        )
        return `${who}: ${all.join(', ')}, ${ending}`
      })
      .join('; ')}`,
  open: async system => {
    const [, victim, own] = system.keys
    if (!victim || !own) throw new Error('there are too few keys')
    const filled = (text: string): string =>
      text.replaceAll(victimPlaceholder, victim.id).replaceAll(ownPlaceholder, own.id)
    let count = 0

    const talk = async ({ who, items, cutting, ending }: Talk): Promise<void> => {
      const send = (texts: readonly string[], isHead: IsHead, ending: Ending) =>
        converse({
          ...{ url: system.gateway().opsUrl, cutting, ending, isHead, expected: texts.length },
          bytes: Buffer.from(filled(texts.join('')), 'latin1'),
        })
      if (who === 'operator') {
        const asked = items.map(({ ask = 'a key', payload }): Asked => {
          count += 1
          return asks[ask](`opmark-${count}`, 1_000 + (count % 1_000_000), filled(payload))
        })
        const texts = asked.map(({ line, content }, i) => {
          const framed = content === undefined ? undefined : items[i]?.framing.frame(filled(content))
          const more = framed ? ['content-type: application/json', ...framed.headers] : []
          return textOf(line, [auth, ...more], framed?.body)
        })
        const isHead = (answer: number) => asked[answer]?.line.startsWith('HEAD') ?? false
        const wanted = asked.map(one => ({ ...one, ...(one.has !== undefined && { has: filled(one.has) }) }))
        checkOperator(wanted, await send(texts, isHead, ending))
        return
      }
      const texts = items.map(({ method, path, framing, payload }) => {
        const { headers, body, version } = framing.frame(filled(payload))
        return textOf(`${method} ${path}`, headers, body, version)
      })
      // After an odd request it is unknown which of them an answer is for.
      const odd = items.findIndex(({ isWhole }) => !isWhole)
      const isKnown = (answer: number): boolean =>
        odd === -1 || answer < odd || items.slice(odd).every(({ method }) => method !== 'HEAD')
      const isHead = (answer: number) => (isKnown(answer) ? items[answer]?.method === 'HEAD' : undefined)
      const end = odd === -1 ? 'answers' : ending
      checkOutsider(items, end, await send(texts, isHead, end), own.id)
    }

    const ask = async (path: string): Promise<Record<string, unknown>> => {
      const headers = { authorization: `Bearer ${token}`, connection: 'close' }
      const { body } = await request(system.gateway().opsUrl + path, { headers })
      return (await body.json()) as Record<string, unknown>
    }
    /** What no outsider may change. */
    const state = async () => {
      const { status, limit, tier, expiresAt } = await ask(`/keys/${victim.id}`)
      const { keys } = (await ask('/keys?limit=1000')) as { keys?: readonly unknown[] }
      return { status, limit, tier, expiresAt, keys: keys?.length }
    }
    const reinstate = (): Promise<unknown> =>
      request(`${system.gateway().opsUrl}/keys/${victim.id}/reinstate`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, connection: 'close' },
      })
    // What a case that failed left must not affect the following cases.
    await reinstate()
    const before = await state()

    return {
      run: async ({ talks, atOnce }) => {
        if (atOnce) await Promise.all(talks.map(talk))
        else for (const one of talks) await talk(one)
        const after = await state()
        const isSame = isDeepStrictEqual(after, before)
        demand(
          isSame,
          'an outsider changes something',
          `${JSON.stringify(before)}, then ${JSON.stringify(after)}`,
        )
      },
    }
  },
}
