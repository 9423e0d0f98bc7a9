// Target: outsiders and operators at the ops listener of a gateway. Whatever outsiders send, and however it is framed, it
// changes nothing and reads nothing; and every request of an operator has exactly its own answer, up to one that ends the connection. Longer than 300 lines,
// because what it sends and what it expects belong together.

import { isDeepStrictEqual } from 'node:util'
import { request } from 'undici'
import { cut, type Finding, finding } from '../finding.ts'
import { converse, type Delivery, type Transcript } from '../http/conversation.ts'
import type { Answer } from '../http/response-reader.ts'
import type { Random } from '../random.ts'
import type { System } from '../system/system.ts'
import type { Session, Target } from '../target.ts'
import {
  framings,
  ownPlaceholder,
  payload,
  tokenPlaceholder,
  victimPlaceholder,
  wholeFramings,
} from './operator-framings.ts'

type Item = {
  readonly kind: string
  readonly text: string
  readonly isHead: boolean
  /** Whether it surely has an answer, and what follows has one too. */
  readonly isWhole: boolean
  readonly statuses: readonly number[]
  /** In the body of its answer, and in no answer to anybody else. */
  readonly has?: string
}
/** What one of them sends on one connection. */
type Talk = {
  readonly who: 'outsider' | 'operator'
  readonly items: readonly Item[]
  readonly delivery: Delivery
}
type OperatorsCase = {
  readonly talks: readonly Talk[]
  /** Whether all of them talk at once. */
  readonly atOnce: boolean
}

const token = 'fuzz-0123456789-abcdefghijklmnopqrstuv'
const methods = ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'POST', 'PUT'] as const
const bodiless: readonly string[] = ['GET', 'HEAD', 'DELETE', 'OPTIONS']
const json = 'content-type: application/json'
/** In what operators send and receive. */
const markOf = (number: number, talk: number, at: number): string => `opmark-${number}-${talk}-${at}`

const textOf = (line: string, headers: readonly string[], body = '', version = 'HTTP/1.1'): string =>
  [`${line} ${version}`, 'host: 127.0.0.1', ...headers, '', body].join('\r\n')

const refusals = [400, 401, 403, 404, 405, 408, 413, 415, 431, 503]

const outsidersItem = (random: Random, framing: string, method: string): Item => {
  const framed = framings[framing]?.(payload(random), random) ?? { headers: [], body: '', isWhole: true }
  const path = random.pick([
    '/status',
    '/keys',
    `/keys/${victimPlaceholder}/revoke`,
    '/cells',
    '/nothing',
    '/livez',
  ])
  // What needs no token is answered, unless it has a body.
  const isOpen = path === '/livez' && !bodiless.includes(method)
  return {
    kind: `${method} ${path} (${framing})`,
    text: textOf(`${method} ${path}`, framed.headers, framed.body, framed.version),
    isHead: method === 'HEAD',
    isWhole: framed.isWhole,
    statuses: isOpen ? [...refusals, 200] : refusals,
  }
}

const operatorsItem = (random: Random, mark: string, unique: number): Item => {
  const auth = `authorization: Bearer ${tokenPlaceholder}`
  const read = (target: string, statuses: readonly number[], has?: string, method = 'GET'): Item => ({
    kind: `${method} ${target.split('?', 1)[0]}`,
    text: textOf(`${method} ${target}`, [auth]),
    isHead: method === 'HEAD',
    isWhole: true,
    statuses,
    ...(has === undefined ? {} : { has }),
  })
  const sends = (
    method: string,
    target: string,
    content: string,
    statuses: readonly number[],
    has?: string,
  ): Item => {
    const framing = random.pick(Object.keys(wholeFramings))
    const framed = wholeFramings[framing]?.(content, random) ?? { headers: [], body: '' }
    return {
      kind: `${method} ${target} (${framing})`,
      text: textOf(`${method} ${target}`, [auth, json, ...framed.headers], framed.body),
      isHead: false,
      isWhole: true,
      statuses,
      ...(has === undefined ? {} : { has }),
    }
  }
  return random.pick([
    () => read(`/cache/cell?of=${mark}`, [400], mark),
    () => read(`/cache/cell?of=${mark}`, [400], mark),
    () => read(`/keys/${ownPlaceholder}`, [200], `"id":"${ownPlaceholder}"`),
    () => read(`/keys/${ownPlaceholder}`, [200], undefined, 'HEAD'),
    () => read('/livez', [200], '"live"'),
    () =>
      sends(
        'POST',
        `/keys/${ownPlaceholder}/limit`,
        `{"limit":${unique}}`,
        [200],
        `"id":"${ownPlaceholder}"`,
      ),
    () => sends('POST', '/cache/purge', JSON.stringify({ scope: mark }), [400], mark),
    () => sends('POST', '/cache/purge', payload(random), [400], 'the body '),
    () => sends('DELETE', '/cache/warm', 'x', [400], 'DELETE request has a body'),
  ])()
}

const deliveryOf = (random: Random, items: readonly Item[]): Delivery => ({
  cuts: random.chance(0.5) ? [] : Array.from({ length: random.between(1, 8) }, () => random.fraction()),
  pauseMs: random.pick([0, 0, 1, 2]),
  ending: items.every(({ isWhole }) => isWhole)
    ? 'answers'
    : random.pick(['quiet', 'quiet', 'half-close', 'reset']),
})

const talkOf = (random: Random, who: Talk['who'], items: readonly Item[]): Talk => ({
  who,
  items,
  delivery: deliveryOf(random, items),
})

const names = Object.keys(framings)

const generate = (random: Random, number: number): OperatorsCase => {
  // Every framing with every method once, then at random.
  const first = number < names.length * methods.length
  const outsiders = Array.from({ length: random.between(1, 3) }, (_, talk) =>
    talkOf(
      random,
      'outsider',
      Array.from({ length: random.between(1, 4) }, (_, at) =>
        first && talk === 0 && at === 0
          ? outsidersItem(
              random,
              names[number % names.length] ?? '',
              methods[Math.floor(number / names.length)] ?? '',
            )
          : outsidersItem(random, random.pick(names), random.pick(methods)),
      ),
    ),
  )
  const operators = Array.from({ length: random.between(1, 3) }, (_, talk) =>
    talkOf(
      random,
      'operator',
      Array.from({ length: random.between(1, 4) }, (_, at) =>
        operatorsItem(random, markOf(number, talk, at), 1_000 + ((number * 16 + talk * 4 + at) % 1_000_000)),
      ),
    ),
  )
  return { talks: [...outsiders, ...operators], atOnce: random.chance(0.3) }
}

const show = (answers: readonly Answer[]): string => answers.map(({ status }) => status).join(' ')

/** Whether the last answer ends the connection, as behind a body that the listener does not read: those behind it are not taken. */
const endsConnection = (answers: readonly Answer[]): boolean =>
  answers.at(-1)?.headers.some(([name, value]) => name === 'connection' && value === 'close') ?? false

const checkOutsider = (
  { items, delivery }: Talk,
  { answers, findings, isReset }: Transcript,
  secrets: readonly string[],
): Finding[] => {
  // What it breaks off itself may get no answer.
  // After an odd HEAD it is unknown which answers have a body.
  const isOddHead = items.some(({ isHead }) => isHead) && items.some(({ isWhole }) => !isWhole)
  const found = delivery.ending === 'reset' || isOddHead ? [] : [...findings]
  if (answers.length > items.length)
    found.push(finding('more answers than requests', `${show(answers)} for ${items.length} of an outsider`))
  const isClear = items.every(({ isWhole }) => isWhole)
  if (isClear && answers.length < items.length && !isReset && !endsConnection(answers))
    found.push(finding('a request without an answer', `${show(answers)} for ${items.length} of an outsider`))
  for (const [i, { status, body }] of answers.entries()) {
    const allowed = items[i]?.statuses ?? refusals
    if (!allowed.includes(status))
      found.push(finding('an outsider is answered', `${status} for ${items[i]?.kind}: ${body}`))
    const secret = secrets.find(one => body.includes(one))
    if (secret !== undefined)
      found.push(finding('an outsider reads what is for operators', `${secret} in ${status}: ${body}`))
  }
  return found
}

const checkOperator = ({ items }: Talk, { answers, findings }: Transcript): Finding[] => {
  const found = [...findings]
  const isShort = answers.length < items.length && !endsConnection(answers)
  if (answers.length > items.length || isShort)
    found.push(
      finding('an operator has not one answer for each request', `${show(answers)} for ${items.length}`),
    )
  for (const [i, { kind, statuses, has, isHead }] of items.entries()) {
    const answer = answers[i]
    if (!answer) break
    const isOwn =
      statuses.includes(answer.status) && (isHead || has === undefined || answer.body.includes(has))
    if (!isOwn)
      found.push(
        finding(
          "an operator has not its request's answer",
          `${answer.status} for ${kind}, without ${has}: ${answer.body}`,
        ),
      )
  }
  return found
}

function* smaller(given: OperatorsCase): Generator<OperatorsCase> {
  const { talks, atOnce } = given
  if (atOnce) yield { ...given, atOnce: false }
  for (const [i, talk] of talks.entries()) {
    yield { ...given, talks: talks.toSpliced(i, 1) }
    if (talk.items.length > 1)
      for (let at = 0; at < talk.items.length; at++)
        yield { ...given, talks: talks.with(i, { ...talk, items: talk.items.toSpliced(at, 1) }) }
    if (talk.delivery.cuts.length > 0)
      yield {
        ...given,
        talks: talks.with(i, { ...talk, delivery: { ...talk.delivery, cuts: [], pauseMs: 0 } }),
      }
  }
}

const open = async (system: System): Promise<Session<OperatorsCase>> => {
  const [, victim, own] = system.keys
  if (!victim || !own) throw new Error('there are too few keys')
  if (victim.id.length !== victimPlaceholder.length)
    throw new Error('ids are not as long as their placeholder')
  const filled = (text: string): string =>
    text
      .replaceAll(tokenPlaceholder, token)
      .replaceAll(victimPlaceholder, victim.id)
      .replaceAll(ownPlaceholder, own.id)
  const secrets = [own.id, 'opmark', '"pid"', 'svc_live_']

  const talk = async (one: Talk): Promise<Finding[]> => {
    const { hostname, port } = new URL(system.gateway().opsUrl)
    const items = one.items.map(item => ({
      ...item,
      text: filled(item.text),
      ...(item.has === undefined ? {} : { has: filled(item.has) }),
    }))
    const bytes = Buffer.from(items.map(({ text }) => text).join(''), 'latin1')
    // After an odd request it is unknown which of them an answer is for.
    const odd = items.findIndex(({ isWhole }) => !isWhole)
    const isHead = (answer: number) =>
      odd === -1 || answer < odd || items.slice(odd).every(({ isHead }) => !isHead)
        ? (items[answer]?.isHead ?? false)
        : undefined
    const transcript = await converse(
      { host: hostname, port: Number(port) },
      bytes,
      one.delivery,
      isHead,
      items.length,
    )
    const filledTalk = { ...one, items }
    return one.who === 'outsider'
      ? checkOutsider(filledTalk, transcript, secrets)
      : checkOperator(filledTalk, transcript)
  }

  const ask = async (path: string, method: 'GET' | 'POST' = 'GET'): Promise<Record<string, unknown>> => {
    const { body } = await request(`${system.gateway().opsUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, connection: 'close' },
    })
    return (await body.json()) as Record<string, unknown>
  }
  /** What no outsider may change. */
  const state = async () => {
    const { status, limit, tier, expiresAt } = await ask(`/keys/${victim.id}`)
    const { keys } = (await ask('/keys?limit=1000')) as { keys?: readonly unknown[] }
    return { status, limit, tier, expiresAt, keys: keys?.length }
  }
  let before = await state()

  return {
    run: async ({ talks, atOnce }) => {
      const found: Finding[] = []
      if (atOnce) found.push(...(await Promise.all(talks.map(talk))).flat())
      else for (const one of talks) found.push(...(await talk(one)))
      const after = await state()
      if (!isDeepStrictEqual(after, before))
        found.push(
          finding(
            'an outsider changes something',
            `${JSON.stringify(before)}, then ${JSON.stringify(after)}`,
          ),
        )
      if (found.length > 0) {
        // What this case left must not affect the following cases.
        await ask(`/keys/${victim.id}/reinstate`, 'POST')
        before = await state()
      }
      return found
    },
    close: async () => {},
  }
}

export const operators: Target<OperatorsCase> = {
  name: 'operators',
  share: 2,
  checks:
    'an outsider at the ops listener changes and reads nothing, however its bodies are framed; each request of an operator has exactly its own answer, up to one that ends the connection',
  batch: 50,
  // One after the other, so that what a case leaves on a connection is found by itself.
  atOnce: 1,
  setting: { moreKeys: 2, env: { ABOHAWA_OPS__TOKEN: token } },
  generate,
  shapeOf: ({ talks }) => /\((.*)\)/.exec(talks[0]?.items[0]?.kind ?? '')?.[1] ?? 'operators alone',
  isAlone: () => false,
  smaller,
  print: ({ talks, atOnce }) =>
    `${atOnce ? 'at once: ' : ''}${talks
      .map(({ who, items }) => `${who}: ${items.map(({ kind }) => kind).join(', ')}`)
      .join('; ')}: ${cut(talks[0]?.items.map(({ text }) => text).join('') ?? '', 300)}`,
  open,
}
