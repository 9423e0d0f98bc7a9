// Without it a command of the runbook could fail or find nothing.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { runCommand } from '../support/process.ts'
import { startProvider } from '../support/provider.ts'
import { patientRedisEnv, startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { sendRequest, startGateway } from '../support/start-gateway.ts'
import { until } from '../support/until.ts'
import { paragraphOf, paragraphs, runInShell } from './runbook.ts'

const root = join(import.meta.dirname, '..', '..')
const commands = paragraphs.flatMap(({ steps }) => steps.flatMap(step => step.commands))

t.test('every command is there, and names its gateway; the configuration is a variable', async t => {
  const others = new Set<string>()
  for (const { text, skipped } of commands.filter(({ text }) => text.startsWith('bin/abohawa '))) {
    t.notMatch(text, / --config/, text)
    if (/ (status|cache show) /.test(text)) t.match(text, / --gateway "\$OPS"/, text)
    if (skipped) others.add(text.split(' ').slice(1, 3).join(' '))
  }
  t.ok(others.size >= 3, [...others].join(', '))
  for (const words of others)
    t.equal((await runCommand([...words.split(' '), '--help'])).code, 0, `abohawa ${words}`)
})

t.test('the causes of errors are in the log, in an outage and without one', async t => {
  const step = paragraphOf('AbohawaErrors').steps[1]?.commands[0]?.text ?? ''
  const printing = step.replace(/^docker compose logs --since 10m gateway-1/, 'cat "$LOG"')
  t.not(printing, step)
  const log = join(t.testdir(), 'log')
  const found: [code: string, msg: string, answers: number, env: Record<string, string>][] = [
    ['provider_unreachable', 'failed', 1, { ABOHAWA_TEST_PROVIDER__RETRIES: '0' }],
    ['provider_unreachable', 'provider outage started', 4, {}],
    ['provider_limited', 'provider outage started', 1, { ABOHAWA_PROVIDER__BUDGET__PER_DAY: '1' }],
  ]
  for (const [code, msg, answers, env] of found) {
    const { get, logged } = await startGateway(t, { providerUrl: 'http://127.0.0.1:9', env })
    for (const point of ['21.1/89.1', '21.3/89.3', '21.5/89.5', '21.7/89.7'].slice(0, answers))
      t.equal((await get(`/weather/coords/${point}`)).status, 500)
    t.ok(
      logged.some(line => line.msg === msg),
      msg,
    )
    writeFileSync(log, `${logged.map(line => JSON.stringify(line)).join('\n')}\n`)
    t.match((await runInShell(t, printing, { LOG: log })).stdout, new RegExp(`^ +\\d+ "code":"${code}"\\n$`))
  }
})

t.test('every command that only reads runs, and prints something', { skip: withoutOwnRedis }, async t => {
  const provider = await startProvider(t, undefined, null)
  const { url } = await startRedis(t)
  const env = {
    ...patientRedisEnv,
    ABOHAWA_REDIS__URL: url,
    ABOHAWA_SERVER__TLS__CERT: join(root, 'test/fixtures/localhost.crt'),
    ABOHAWA_SERVER__TLS__KEY: join(root, 'test/fixtures/localhost.key'),
    ABOHAWA_OPS__TOKEN: 'k3J9-xQ2.mN7_pR4~tW8+yZ1/bD5cF6g==',
    ABOHAWA_PROVIDER__BUDGET__PER_DAY: '10000',
  }
  const gateway = await startGateway(t, { providerUrl: provider.url, env })
  const folder = t.testdir()
  const file = join(folder, 'gateway.yaml')
  const { port } = new URL(gateway.opsUrl)
  writeFileSync(
    file,
    `server: { port: 0 }\nops: { port: ${port} }\nprovider: { baseUrl: '${provider.url}' }\n`,
  )
  const variables = {
    ...env,
    OPS: gateway.opsUrl,
    API: new URL(gateway.apiUrl).host,
    ABOHAWA_CONFIG_FILE: file,
    CERT: env.ABOHAWA_SERVER__TLS__CERT,
    DATA: folder,
    PROVIDER: provider.url,
  }
  // Node's own series of garbage collection appear with the first one.
  const scrape = await until('garbage was collected', async () => {
    const { text } = await sendRequest(`${gateway.opsUrl}/metrics`)
    return text.includes('\nnodejs_gc_duration_seconds_count') && text
  })

  for (const text of new Set(commands.filter(({ skipped }) => !skipped).map(command => command.text))) {
    const { code, stdout, stderr } = await runInShell(t, text, variables)
    t.equal(code, 0, `${text}\n${stderr}`)
    t.not(stdout, '', text)
    t.notMatch(stdout, /"error"/, text)
  }

  const samples = scrape.replaceAll(/^#.*\n/gm, '')
  const patterns = commands.flatMap(({ text }) => {
    const [, expression, word] = /\/metrics" \| grep (?:-E '([^']+)'|(\S+))/.exec(text) ?? []
    return expression ?? word ?? []
  })
  t.ok(patterns.length > 15, `${patterns.length} patterns`)
  for (const pattern of patterns)
    for (const part of alternativesOf(pattern))
      t.ok(new RegExp(part, 'm').test(samples), `grep ${part} finds a series`)
})

/** The alternatives of an extended regular expression at its top, each of which is to find something. */
const alternativesOf = (pattern: string): string[] => {
  const parts = ['']
  let depth = 0
  for (const character of pattern) {
    if (character === '(') depth += 1
    if (character === ')') depth -= 1
    if (character === '|' && depth === 0) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts
}
