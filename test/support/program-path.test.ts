// Where tests, and what installs their programs, look for programs: also where Debian keeps servers.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { cleanEnv } from './process.ts'

const skip = existsSync('/usr/sbin/nginx') ? false : 'needs nginx in /usr/sbin'

t.test('an installed nginx is found on the path of an ordinary user', { skip }, t => {
  const look = `process.exit(require('node:child_process').spawnSync('nginx', ['-v']).status ?? 1)`
  const env = cleanEnv({ PATH: '/usr/local/bin:/usr/bin:/bin' })
  const run = (...args: string[]) => spawnSync(process.execPath, [...args, '-e', look], { env }).status
  t.equal(run(), 1, 'which does not name its folder')
  t.equal(run('--require', join(import.meta.dirname, 'plain-node.ts')), 0)
  t.end()
})
