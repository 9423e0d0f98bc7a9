// Without it the systemd unit could be too open, refuse a system call, or fail to start, reload or stop.

import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { endsWithinMs } from '../../src/cli/serve/supervisor.ts'
import { loadConfig } from '../../src/config/load.ts'
import { freePort } from '../support/listening.ts'
import { childrenOf } from '../support/proc.ts'
import { spawnProgram, startProgram } from '../support/process.ts'
import { without, withoutCurl } from '../support/programs.ts'
import { testRedis } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { replaced } from './nginx.ts'

const usual = loadConfig({ files: [], env: {} })
const root = join(import.meta.dirname, '..', '..')
const service = readFileSync(join(root, 'deploy/systemd/abohawa.service'), 'utf8')
const token = 'f00dfeedfacedeadbeef0123456789abcdef0123456789abcdef'

const withoutAnalyze = without('systemd-analyze', 'systemd-analyze', '--version')
const withoutStrace = without('strace', 'strace', '--version')

/** All values of a setting, in their order. */
const valuesOf = (unit: string, setting: string): string[] =>
  [...unit.matchAll(new RegExp(`^${setting}=(.*)$`, 'gm'))].map(([, value = '']) => value)

/** The single value of a setting. @throws Error when there is none, or several */
const oneOf = (unit: string, setting: string): string => {
  const [value, ...more] = valuesOf(unit, setting)
  if (value === undefined || more.length > 0) throw new Error(`${setting}= is there ${more.length + 1} times`)
  return value
}

/** The variables of `Environment=`, and the ones that systemd itself gives. */
const environmentOf = (unit: string): Record<string, string> => ({
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin',
  LANG: 'C.UTF-8',
  ...Object.fromEntries(
    valuesOf(unit, 'Environment').map(assignment => {
      const at = assignment.indexOf('=')
      return [assignment.slice(0, at), assignment.slice(at + 1)]
    }),
  ),
})

/** The unit as it is installed, with the paths of this machine. */
const installed = async (t: Test) => {
  const folder = t.testdir({ etc: {}, credentials: {}, state: {}, cache: {}, node: {} })
  const redis = await testRedis(t)
  // Each of its two processes has a port for operators.
  const api = await freePort(3)
  const ops = api + 1
  writeFileSync(
    join(folder, 'etc/gateway.yaml'),
    `server: { port: ${api}, drainFor: 0s }
ops: { port: ${ops} }
redis: { prefix: '${redis.prefix}', commandTimeout: 1m }
provider: { baseUrl: 'http://127.0.0.1:9' }
`,
  )
  writeFileSync(join(folder, 'credentials/redis-url'), `${redis.url}\n`)
  writeFileSync(join(folder, 'credentials/ops-token'), `${token}\n`)
  const unit = replaced(service, {
    '/opt/abohawa': root,
    '/etc/abohawa': join(folder, 'etc'),
    '%d': join(folder, 'credentials'),
    '%S/abohawa': join(folder, 'state'),
    '%C/abohawa': join(folder, 'cache'),
    '127.0.0.1:9090': `127.0.0.1:${ops}`,
  })
  return { folder, unit, api, ops: `http://127.0.0.1:${ops}` }
}

/** Runs ExecStart=, by default as it is. */
const startUnit = async (
  t: Test,
  { unit }: { unit: string },
  listeners: readonly string[],
  wrapper: readonly string[] = [],
) => {
  const words = [...wrapper, ...oneOf(unit, 'ExecStart').split(' ')]
  const options = { env: environmentOf(unit), cwd: oneOf(unit, 'WorkingDirectory') }
  const { child, said, exited, lines } = await startProgram(t, words, listeners, options)
  const logs = (text: string) =>
    until(`the log says ${text}`, () => {
      if (child.exitCode !== null) throw new Error(said.stderr)
      return lines.some(line => line.includes(text))
    })
  return { child, exited, logs }
}

t.test('the times of the unit are longer than what they wait for, and its starts have an end', async t => {
  t.ok(Number(oneOf(service, 'TimeoutStopSec')) * 1_000 > endsWithinMs(usual))
  // A gateway that ends at once is noticed when curl has given up.
  const retries = Number(/--retry (\d+) --retry-delay 1 /.exec(oneOf(service, 'ExecStartPost'))?.[1])
  const startSeconds = retries + Number(oneOf(service, 'RestartSec'))
  t.ok(
    Number(oneOf(service, 'StartLimitBurst')) * startSeconds <
      Number(oneOf(service, 'StartLimitIntervalSec')),
  )
})

t.test('systemd takes the unit, and judges its exposure as low', { skip: withoutAnalyze }, async t => {
  const { folder, unit } = await installed(t)
  mkdirSync(join(folder, 'units'))
  writeFileSync(join(folder, 'units/abohawa.service'), unit)
  const file = join(folder, 'units/abohawa.service')
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], {
    encoding: 'utf8',
  })
  const own = `${stdout}${stderr}`.split('\n').filter(line => line.includes('abohawa'))
  t.strictSame([status, own], [0, []])
  const security = ['security', '--offline=yes', '--threshold=20', '--no-pager']
  const judged = spawnSync('systemd-analyze', [...security, join(root, 'deploy/systemd/abohawa.service')], {
    encoding: 'utf8',
  })
  t.equal(judged.status, 0, judged.stdout.trim().split('\n').at(-1) ?? '')
})

t.test('files, folders and secrets of the unit belong together', async t => {
  const paths = valuesOf(service, 'Environment').map(line => line.slice(line.indexOf('=') + 1))
  for (const wanted of [`%S/${oneOf(service, 'StateDirectory')}`, `%C/${oneOf(service, 'CacheDirectory')}`])
    t.ok(
      paths.some(path => path === wanted || dirname(path) === wanted),
      wanted,
    )
  const secrets = valuesOf(service, 'LoadCredential').map(line => line.split(':')[0])
  const { length } = valuesOf(service, 'Environment').filter(line => line.includes('__FILE=%d/'))
  t.equal(length, secrets.length)
  for (const name of secrets) t.match(service, `__FILE=%d/${name}\n`)
  t.equal(oneOf(service, 'MemoryDenyWriteExecute'), 'no', 'V8 compiles at run time')
  t.ok(existsSync(join(root, oneOf(service, 'ExecStart').split(' ')[0]?.replace('/opt/abohawa/', '') ?? '')))
})

t.test('the command lines start, await, reload, restart and stop it', { skip: withoutCurl() }, async t => {
  const parts = await installed(t)
  const { child, exited, logs } = await startUnit(t, parts, [])
  // Begun before it listens, as systemd does.
  const wait = oneOf(parts.unit, 'ExecStartPost').split(' ')
  const waiting = spawnProgram(t, wait, { env: environmentOf(parts.unit) })
  t.equal(await waiting.exited, 0, 'it has waited until the gateway is ready')
  t.equal((await fetch(`${parts.ops}/readyz`)).status, 200)
  t.equal((await fetch(`${parts.ops}/status`)).status, 401, 'the token of the credential is asked for')
  const authorization = `Bearer ${token}`
  t.equal((await fetch(`${parts.ops}/status`, { headers: { authorization } })).status, 200)
  t.ok(existsSync(environmentOf(parts.unit).NODE_COMPILE_CACHE ?? '-'))

  const reload = oneOf(parts.unit, 'ExecReload').replace('$MAINPID', String(child.pid)).split(' ')
  t.equal(spawnSync(reload[0] ?? '', reload.slice(1)).status, 0)
  await logs('configuration unchanged')
  // As `systemctl kill` with SIGALRM does.
  child.kill('SIGALRM')
  await logs('processes restarted')
  child.kill('SIGTERM')
  t.equal(await exited, 0)
})

/** The names of a filter's group, those of groups in it too. */
const callsOf = (group: string): string[] =>
  spawnSync('systemd-analyze', ['syscall-filter', '--no-pager', group], { encoding: 'utf8' })
    .stdout.split('\n')
    .filter(line => /^ {4}[@a-z]/.test(line))
    .map(line => line.trim())
    .flatMap(name => (name.startsWith('@') ? callsOf(name) : [name]))

t.test('no system call is refused', { skip: withoutAnalyze || withoutStrace }, async t => {
  const allowed = new Set<string>()
  for (const filter of valuesOf(service, 'SystemCallFilter'))
    for (const group of filter.replace('~', '').split(' '))
      for (const name of callsOf(group)) filter.startsWith('~') ? allowed.delete(name) : allowed.add(name)
  t.ok(allowed.size > 200)

  const parts = await installed(t)
  const trace = join(parts.folder, 'trace')
  const wrapper = ['strace', '-f', '-qq', '--seccomp-bpf', '-e', 'signal=none', '-o', trace, '-e']
  // Only what is refused is stopped at and written, which keeps it quick.
  const refused = `trace=!${[...allowed].map(name => `?${name}`).join(',')}`
  const { child, exited } = await startUnit(t, parts, ['api'], [...wrapper, refused])
  t.equal((await fetch(`http://127.0.0.1:${parts.api}/api/v1/locations`)).status, 401)
  t.equal((await fetch(`${parts.ops}/metrics`)).status, 200)
  // strace does not hand a signal on.
  process.kill(childrenOf(child.pid)[0] ?? 0, 'SIGTERM')
  t.equal(await exited, 0)
  const calls = [...readFileSync(trace, 'utf8').matchAll(/^\d+ +(?:<\.\.\. )?(\w+)/gm)].map(
    ([, name]) => name,
  )
  t.strictSame([...new Set(calls)], [])
})
