// Without this, a part of a password in a mistyped URL could be printed.

import { createServer } from 'node:net'
import fc from 'fast-check'
import t from 'tap'
import { run } from '../../src/cli/program.ts'
import { systemClock } from '../../src/common/clock.ts'
import { messageOf } from '../../src/common/errors.ts'
import { loadConfig } from '../../src/config/load.ts'
import { describeConfig } from '../../src/config/values.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { loadTexts } from '../config/load-text.ts'
import { listenOn } from '../support/listening.ts'

const silent = { redisAway: () => {}, redisBack: () => {} }

/** The pieces of a password, three characters each, that are printed and would not be there without it. */
const leaked = (password: string, printed: string, usual: string): string | undefined => {
  for (let i = 0; i + 3 <= password.length; i += 1) {
    const piece = password.slice(i, i + 3)
    if (printed.includes(piece) && !usual.includes(piece)) return piece
  }
  return undefined
}

// Letters that occur in none of our sentences, and every character with a meaning in a URL, in YAML, JSON or a shell,
// except for the mask character.
const special = [...'@/#?:%&=+;,.!$()[]{}<>|\\^~`"\'-_0123456789 \t']
const letter = fc.constantFrom(...'QXZWKJqxzwkj', 'Ω', 'ঢ', '😀')
const password = (without = '') => {
  const sign = fc.constantFrom(...special.filter(c => !without.includes(c)))
  const character = fc.oneof({ weight: 2, arbitrary: letter }, sign)
  return fc.array(character, { minLength: 3, maxLength: 24 }).map(characters => characters.join(''))
}
const plain = password(' \t')
const blank = password()

const urlsWith = (secret: string) => [
  `redis://user:${secret}@redis.example:6380/1`,
  `rediss://:${secret}@redis.example`,
  `redis://user:${secret}`,
  `redis://${secret}@redis.example`,
  `redis:/user:${secret}@redis.example`,
  `user:${secret}@redis.example:6379`,
  `redis://redis.example/0?password=${secret}`,
  `redis://redis.example/0?family=6&sentinelPassword=${secret}&db=1`,
  `redis://user:${secret}@redis.example/0?password=${secret}`,
]
// Without the host or the name, a part of the password is parsed in its place; no parser can detect that.
const isUndecidable = (url: string, secret: string): boolean =>
  (url === `redis://user:${secret}` && /@|^\d+["'`),;:.]*([/?#\s]|$)/.test(secret)) ||
  (url === `redis://${secret}@redis.example` && secret.includes(':'))
// For some passwords some of the forms are valid; then there is no fault, and the URL is shown.
const printedOf = (env: NodeJS.ProcessEnv): string => {
  try {
    return describeConfig(loadConfig({ files: [], env }))
  } catch (error) {
    return messageOf(error)
  }
}
const usual = ['KEY', 'a@b/c#d', 'x']
  .flatMap(urlsWith)
  .map(url =>
    printedOf({ ABOHAWA_REDIS__URL: url, ABOHAWA_PROVIDER__BASE_URL: url, ABOHAWA_STORE__PATH: url }),
  )
  .concat(printedOf({}))
  .join('\n')
  .concat(' ://***@ "***" {"***"} [1] [2] [0] is "')

t.test('no fault and no listing of a configuration repeats a part of a password', async () => {
  fc.assert(
    fc.property(blank, secret => {
      for (const url of urlsWith(secret)) {
        if (isUndecidable(url, secret)) continue
        // In a URL setting the whole text is the URL; elsewhere a URL has :// and ends at a blank.
        const isKnown = url.includes('://') && !/[ \t]/.test(secret)
        const item = JSON.stringify([url])
        const cluster = { ABOHAWA_REDIS__URL: 'redis://a', ABOHAWA_REDIS__MODE: 'cluster' }
        for (const env of [
          { ABOHAWA_REDIS__URL: url },
          { ABOHAWA_PROVIDER__BASE_URL: url.replace(/^rediss?/, 'https') },
          ...(isKnown ? [{ ABOHAWA_STORE__PATH: url }, { ...cluster, ABOHAWA_REDIS__NODES: item }] : []),
        ]) {
          const found = leaked(secret, printedOf(env), usual)
          if (found !== undefined) throw new Error(`${JSON.stringify(found)} of ${url} in ${printedOf(env)}`)
        }
      }
    }),
    { numRuns: 30, examples: [['/QQQ']] },
  )
})

t.test('a URL in a file is hidden as a value, a name and an item', async t => {
  const url = 'redis://user:QX/ZW@KJ#qx@redis.example'
  for (const text of [
    `redis: { url: "${url}" }`,
    `redis: { "${url}": 1 }`,
    `"${url}": 1`,
    `redis: { url: redis://a, mode: cluster, nodes: ["${url}"] }`,
    `log: "${url}"`,
    `server: { port: "${url}" }`,
    `quota: { tiers: { "${url}": 1 } }`,
    `redis: { url: ${'x'.repeat(70)}://user:QXZWKJ@redis.example }`,
    `store: { path: "${url}" }\nredis: ${url}`,
  ]) {
    let printed = ''
    try {
      printed = describeConfig(loadTexts(t, { files: [text] }))
    } catch (error) {
      printed = messageOf(error)
    }
    t.match(printed, /\*\*\*/, text)
    t.notMatch(printed, /QX|ZW|KJ/, printed)
  }
})

t.test('nothing that a command prints repeats a part of a password on its command line', async t => {
  const held: string[] = []
  const keep = (text: string | Uint8Array) => held.push(String(text)) > 0
  const { write: toErrors } = process.stderr
  const { write: toOutput } = process.stdout
  const printedBy = async (args: readonly string[]): Promise<string> => {
    held.length = 0
    process.stderr.write = keep as typeof toErrors
    process.stdout.write = keep as typeof toOutput
    const env = { ABOHAWA_STORE__PATH: ':memory:', ABOHAWA_TEST_REDIS__CONNECT_TIMEOUT: '50ms' }
    try {
      await run(args, { env, clock: systemClock })
    } finally {
      process.stderr.write = toErrors
      process.stdout.write = toOutput
    }
    return held.join('')
  }
  const commands = (url: string) => [
    ['store', 'copy', '--to', url.replace('redis.example', '127.0.0.1:1').replace(':1:6380', ':1')],
    ['cache', 'show', '23,90', '--gateway', url],
    ['demo', '--upstream', url],
    ['keys', 'list', url],
    ['keys', 'list', `--store=${url}`],
  ]
  let known = ''
  for (const args of urlsWith('K/EY').flatMap(commands)) known += await printedBy(args)
  t.match(known, /--to must be a redis.*, got "redis/)
  await fc.assert(
    fc.asyncProperty(plain, fc.nat(3), async (secret, form) => {
      const url = urlsWith(secret)[form] ?? ''
      if (isUndecidable(url, secret)) return
      for (const args of commands(url)) {
        // The path of a file is a valid target of a copy too, and is printed.
        if (args[1] === 'copy' && !args[3]?.includes('://')) continue
        const printed = await printedBy(args)
        const found = leaked(secret, printed, `${known} ${usual}`)
        if (found !== undefined)
          throw new Error(`${JSON.stringify(found)} of ${args.join(' ')} in ${printed}`)
      }
    }),
    { numRuns: 40 },
  )
})

t.test('a Redis that refuses or is not there is named without its password', async t => {
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end('-WRONGPASS invalid username-password pair.\r\n'))
  })
  const port = await listenOn(t, server)
  for (const at of [`127.0.0.1:${port}`, '127.0.0.1:1'])
    for (const mode of ['single', 'sentinel', 'cluster'] as const) {
      const isSentinel = mode === 'sentinel'
      const redis = {
        ...{ url: `redis://user:QX%2FZW%40KJ@${at}`, mode, prefix: 'x:' },
        sentinelMaster: isSentinel ? 'one' : null,
        sentinelPassword: isSentinel ? 'QXZWKJ' : null,
        ...{ connectTimeoutMs: 300, commandTimeoutMs: 300 },
      }
      const opening = openStore({ store: { path: ':memory:' }, redis }, systemClock, silent)
      const error = await t.rejects(opening, { name: 'InputError' }, mode)
      t.match(messageOf(error), at)
      t.notMatch(messageOf(error), /QX|ZW|KJ/)
    }
})
