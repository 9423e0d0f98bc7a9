// Without it a command of docs/operating/install.md could fail, or its rolling restart lose requests.

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { Agent, request } from 'undici'
import { freePort } from '../support/listening.ts'
import { spawnProgram } from '../support/process.ts'
import { startProvider } from '../support/provider.ts'
import { patientRedisEnv, startRedis, withoutOwnRedis } from '../support/redis-server.ts'
import { patienceMs, until } from '../support/until.ts'
import { replaced, startNginx, withoutNginx } from './nginx.ts'

const root = join(import.meta.dirname, '..', '..')
const page = readFileSync(join(root, 'docs/operating/install.md'), 'utf8')
const [, walk = ''] = /^<!-- walk -->\n(.*?)^<!-- end of the walk -->$/ms.exec(page) ?? []
const blocks = [...walk.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block)

const restartAt = blocks.findIndex(block => block.startsWith('for i in') && block.includes('kill '))

/** The beginning of two free ports, which end with 1 and with 2, as those of the page do. */
const freePair = async (): Promise<string> => String(Math.ceil(((await freePort(12)) - 1) / 10))

/** A key for the load, which the loop of the restart waits for; then the shell waits for the end of the load. */
const loadAround = (restart: string, folder: string): string => `
abohawa keys create --config gateway.yaml --subscriber Load --tier enterprise --json | jq -r .key > ${folder}/load.new
mv ${folder}/load.new ${folder}/load-key
until [ -e ${folder}/load-runs ]; do sleep 0.05; done
${restart}
touch ${folder}/restarted
until [ -e ${folder}/load-ended ]; do sleep 0.05; done
`

/** Requests from six callers while the shell restarts both gateways; at most some 100 a second each, so that the restart has a core. */
const loadDuringRestart = async (
  folder: string,
  port: number,
  isOver: () => boolean,
  blocksRun: () => number,
) => {
  const file = (name: string) => join(folder, name)
  // Each has its own wait: the first one installs packages.
  for (let i = 1; i <= restartAt; i++) await until(`block ${i} has run`, () => isOver() || blocksRun() >= i)
  await until('the load has its key', () => isOver() || existsSync(file('load-key')))
  if (isOver()) return { answered: 0, faults: ['the shell ended before'] }
  const headers = { 'x-api-key': readFileSync(file('load-key'), 'utf8').trim() }
  const ca = readFileSync(file('etc/nginx/tls/abohawa.crt'))
  const agent = new Agent({ connect: { ca, servername: 'weather.example' } })
  let answered = 0
  const faults: string[] = []
  const endsAt = performance.now() + patienceMs
  const callers = Array.from({ length: 6 }, async () => {
    while (performance.now() < endsAt && !isOver() && !existsSync(file('restarted'))) {
      try {
        const url = `https://127.0.0.1:${port}/api/v1/locations?type=division`
        const { statusCode, body } = await request(url, { dispatcher: agent, headers })
        const answer = await body.text()
        if (statusCode === 200) answered += 1
        else faults.push(`${statusCode} ${answer}`)
      } catch (error) {
        faults.push(String(error))
      }
      if (answered > 0 && !existsSync(file('load-runs'))) writeFileSync(file('load-runs'), '')
      await pause(30)
    }
  })
  await Promise.all(callers)
  writeFileSync(file('load-ended'), '')
  await agent.destroy()
  return { answered, faults }
}

const skip = withoutNginx || withoutOwnRedis
t.test('every command of the walk works, in its order', { skip }, async t => {
  t.ok(blocks.length >= 8, `${blocks.length} blocks`)
  t.equal(walk.match(/^```/gm)?.length, blocks.length * 2, 'what is shown is run')

  const folder = mkdtempSync(join(tmpdir(), 'abohawa-walk-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const at = (name: string) => join(folder, name)
  for (const name of ['product', 'programs', 'etc/nginx/conf.d', 'nginx'])
    mkdirSync(at(name), { recursive: true })
  const files = ['package.json', 'package-lock.json', '.npmrc', 'locations.json']
  for (const name of [...files, 'bin', 'config', 'dashboard', 'tools', 'src', 'deploy'])
    cpSync(join(root, name), join(at('product'), name), { recursive: true })
  symlinkSync(process.execPath, at('programs/node'))

  const [{ url: provider }, redis, http, https] = await Promise.all([
    startProvider(t, ['--runs', 'none'], null),
    startRedis(t),
    freePort(),
    freePort(),
  ])
  // The nginx of the machine: it runs already, and reads conf.d.
  await startNginx(t, at('nginx'), `include ${at('etc/nginx/conf.d')}/*.conf;`)
  const nginxOptions = `-p ${at('nginx')} -e ${at('nginx/error.log')} -c ${at('nginx/nginx.conf')}`
  writeFileSync(at('programs/nginx'), `#!/bin/sh\nexec /usr/sbin/nginx ${nginxOptions} "$@"\n`, {
    mode: 0o755,
  })

  const [apis, ops] = [await freePair(), await freePair()]
  const site = join(at('product'), 'deploy/nginx/abohawa.conf')
  writeFileSync(
    site,
    replaced(readFileSync(site, 'utf8'), {
      'listen 80;': `listen 127.0.0.1:${http};`,
      'listen 443 ': `listen 127.0.0.1:${https} `,
      '/etc/nginx': at('etc/nginx'),
      '/var/log/nginx': at('nginx'),
      '127.0.0.1:808': `127.0.0.1:${apis}`,
    }),
  )
  const parts = blocks.map((block, i) => (i === restartAt ? loadAround(block, folder) : block))
  const script = replaced(parts.join('echo "--- done"\n'), {
    '/etc/': `${at('etc')}/`,
    '6379': String(redis.port),
    'https://api.open-meteo.com': provider,
    'port: 808': `port: ${apis}`,
    'port: 908': `port: ${ops}`,
    'ready 908': `ready ${ops}`,
    ':443': `:${https}`,
  })
  t.teardown(() => {
    // The shell makes the folder. Where it ended before, there is no gateway, and nginx and Redis have to end nevertheless.
    if (!existsSync(at('etc/abohawa'))) return
    for (const name of readdirSync(at('etc/abohawa')).filter(each => each.endsWith('.pid')))
      try {
        process.kill(Number(readFileSync(at(`etc/abohawa/${name}`), 'utf8')), 'SIGKILL')
      } catch {
        // It has ended, as it should have.
      }
  })
  const { child, said, closed } = spawnProgram(t, ['bash', '-euo', 'pipefail', '-c', script], {
    cwd: at('product'),
    env: {
      PATH: `${at('programs')}:/usr/local/bin:/usr/bin:/bin`,
      HOME: folder,
      // Shorter than any time for which nginx may leave a gateway alone: what it remembers of the first shows at the second.
      ABOHAWA_SERVER__DRAIN_FOR: '200ms',
      ...patientRedisEnv,
      npm_config_cache: process.env.npm_config_cache ?? join(process.env.HOME ?? '', '.npm'),
      npm_config_prefer_offline: 'true',
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const printed = () => said.stdout.split('--- done\n')
  const [code, { answered, faults }] = await Promise.all([
    closed,
    loadDuringRestart(
      folder,
      https,
      () => child.exitCode !== null,
      () => printed().length - 1,
    ),
  ])
  t.equal(code, 0, `${said.stdout}\n${said.stderr}`)
  const [install, configure, start, , nginx, weather, restart] = printed()
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  t.match(install, `${version}\n`)
  t.match(configure, /^PONG\n/)
  t.equal(start, '')
  t.equal(nginx, '')
  t.match(weather, /HTTP\/2 200/)
  t.match(weather, /x-ratelimit-remaining: 999\r/i)
  t.match(weather, /^"Dhaka"$/m)
  t.equal(restart, '')
  t.ok(answered > 100, `${answered} requests were answered while both gateways were restarted`)
  t.strictSame([faults.length, faults[0]], [0, undefined], 'none was lost')
})
