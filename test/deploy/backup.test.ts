// Without it the backup and restore commands of docs/operating/redis.md could lose units or keys.

import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { request } from 'undici'
import { createKey, processEnv, startProcess } from '../scenarios/set-up.ts'
import { freePort } from '../support/listening.ts'
import { cleanEnv, outputOf, product, type Running } from '../support/process.ts'
import { patientRedisEnv, withoutOwnRedis } from '../support/redis-server.ts'
import { replaced } from './nginx.ts'

const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs/operating/redis.md'), 'utf8')
const blockOf = (name: string): string => {
  const [, block] = new RegExp(`<!-- ${name} -->\n\`\`\`sh\n(.*?)\`\`\``, 's').exec(page) ?? []
  if (block === undefined) throw new Error(`the page has no block "${name}"`)
  return block
}

/** A machine with the folders of the page, whose services are what `systemctl` of the block is for. */
const machine = async (t: Test, env: (at: (path: string) => string) => Record<string, string>) => {
  const root = t.testdir()
  const at = (path: string) => join(root, path)
  for (const folder of ['/var/lib/abohawa', '/var/backups', '/etc/redis', '/programs'])
    mkdirSync(at(folder), { recursive: true })
  const settings = processEnv('http://127.0.0.1:9', { ABOHAWA_QUOTA__TIERS__FREE: '100', ...env(at) })
  writeFileSync(at('/programs/abohawa'), `#!/bin/sh\nexec ${product} "$@"\n`, { mode: 0o755 })
  writeFileSync(at('/programs/runuser'), '#!/bin/sh\nshift 3\nexec "$@"\n', { mode: 0o755 })
  const shell = (script: string) =>
    outputOf(t, ['bash', '-euo', 'pipefail', '-c', script], {
      env: cleanEnv({ ...settings, PATH: `${at('/programs')}:${process.env.PATH}` }),
    })
  let gateway: Running | undefined
  const services: Record<string, { start(): Promise<unknown>; stop(): Promise<unknown> }> = {
    abohawa: {
      start: async () => {
        gateway = await startProcess(t, settings)
      },
      stop: async () => {
        gateway?.child.kill('SIGTERM')
        await gateway?.exited
      },
    },
  }
  return {
    at,
    shell,
    services,
    /** Runs a block of the page below the root of the machine. */
    run: async (name: string, changed: Readonly<Record<string, string>> = {}): Promise<void> => {
      const script = replaced(blockOf(name), { '/var/': `${at('/var')}/`, ...changed })
      for (const part of script.split(/^(?=systemctl )|(?<=^systemctl .*\n)/m)) {
        const [, order, service = ''] = /^systemctl (start|stop) (\S+)/.exec(part) ?? []
        if (order === 'start' || order === 'stop') await services[service]?.[order]()
        else await shell(part)
      }
    },
    createKey: () => createKey(settings, 'free'),
    /** What is left of the key's quota after one request more; the status where there is none. */
    leftAfterOne: async (key: string): Promise<number> => {
      const url = `${gateway?.urls.api}/api/v1/locations?type=division`
      const { statusCode, headers, body } = await request(url, { headers: { 'x-api-key': key } })
      await body.dump()
      return statusCode === 200 ? Number(headers['x-ratelimit-remaining']) : statusCode
    },
  }
}

const spend = async ({ leftAfterOne }: Awaited<ReturnType<typeof machine>>, key: string, units: number) => {
  let left = 0
  for (let i = 0; i < units; i++) left = await leftAfterOne(key)
  return left
}

t.test('a file: 95 left at the backup are 95 after the restore; without its -wal 97', async t => {
  const here = await machine(t, at => ({ ABOHAWA_STORE__PATH: at('/var/lib/abohawa/abohawa.db') }))
  const { at, services } = here
  const key = await here.createKey()
  await services.abohawa?.start()
  t.equal(await spend(here, key, 3), 97)
  // Ends with everything in the file; what follows is in the -wal.
  await services.abohawa?.stop()
  await services.abohawa?.start()
  t.equal(await spend(here, key, 2), 95)
  copyFileSync(at('/var/lib/abohawa/abohawa.db'), at('/var/backups/copied.db'))
  await here.run('back up a file', { '$(date +%a)': 'Thu' })
  t.equal(await spend(here, key, 10), 85)
  const later = await here.createKey()
  t.equal(await here.leftAfterOne(later), 99)

  await here.run('restore a file')
  t.equal(await here.leftAfterOne(key), 94)
  t.equal(await here.leftAfterOne(later), 401)
  t.ok(readdirSync(at('/var/lib/abohawa/before')).includes('abohawa.db'))

  rmSync(at('/var/lib/abohawa/before'), { recursive: true })
  copyFileSync(at('/var/backups/copied.db'), at('/var/backups/abohawa-Thu.db'))
  await here.run('restore a file')
  t.equal(await here.leftAfterOne(key), 96, 'as the page warns')
})

t.test('Redis: 95 left at the backup are 95 after the restore', { skip: withoutOwnRedis }, async t => {
  const port = await freePort()
  const here = await machine(t, () => ({
    ...patientRedisEnv,
    ABOHAWA_REDIS__URL: `redis://127.0.0.1:${port}`,
  }))
  const { at, services, shell } = here
  const config = at('/etc/redis/redis.conf')
  const client = `redis-cli -p ${port}`
  const changed = { 'redis-cli': client }
  mkdirSync(at('/var/lib/redis'))
  writeFileSync(
    config,
    `port ${port}\nbind 127.0.0.1\ndir ${at('/var/lib/redis')}\nappendonly yes\nsave ""\n`,
  )
  services['redis-server'] = {
    start: () =>
      shell(`redis-server ${config} --daemonize yes; until ${client} ping | grep PONG; do sleep 0.05; done`),
    stop: () => shell(`${client} shutdown; while ${client} ping; do sleep 0.05; done 2>/dev/null`),
  }
  t.teardown(() => shell(`${client} shutdown nosave || true`))
  await services['redis-server'].start()
  const key = await here.createKey()
  await services.abohawa?.start()
  t.equal(await spend(here, key, 5), 95)
  await here.run('back up Redis', changed)
  t.equal(await spend(here, key, 10), 85)
  const later = await here.createKey()
  t.equal(await here.leftAfterOne(later), 99)

  await here.run('restore Redis', {
    ...changed,
    '/etc/': `${at('/etc')}/`,
    '-o redis -g redis ': '',
    'sleep 1': 'sleep 0.05',
  })
  t.equal(await here.leftAfterOne(key), 94)
  t.equal(await here.leftAfterOne(later), 401)
  t.ok(existsSync(at('/var/lib/redis/appendonlydir')))

  await services.abohawa?.stop()
  await services['redis-server'].stop()
  rmSync(at('/var/lib/redis/appendonlydir'), { recursive: true })
  copyFileSync(at('/var/backups/abohawa.rdb'), at('/var/lib/redis/dump.rdb'))
  await services['redis-server'].start()
  t.equal(await shell(`${client} dbsize`), '0\n', 'as the page warns')
})
