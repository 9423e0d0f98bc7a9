// A real nginx for a test, with a configuration file of this repository whose addresses and paths are replaced. It runs in the
// foreground as this user, writes into the folder of the test alone, and ends with it.

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { without } from '../support/programs.ts'
import type { Teardown } from '../support/teardown.ts'
import { until } from '../support/until.ts'

/** For tests with nginx: false, or why they are skipped. */
export const withoutNginx = without('nginx on the path', 'nginx', '-v')

/**
 * A text with every part replaced, in one pass: a port that was put in is never taken for another.
 * @throws Error for a part that is not there: the file has changed
 */
export const replaced = (text: string, parts: Readonly<Record<string, string>>): string => {
  const all = Object.keys(parts)
  for (const part of all) if (!text.includes(part)) throw new Error(`"${part}" is not in the text`)
  const any = new RegExp(all.map(part => RegExp.escape(part)).join('|'), 'g')
  return text.replaceAll(any, part => parts[part] ?? '')
}

/**
 * Starts nginx with a file for conf.d, and waits until it runs, and a port of it is open where there is one.
 * @throws Error with what nginx says is wrong
 */
export const startNginx = async (t: Teardown, folder: string, site: string, port?: number): Promise<void> => {
  writeFileSync(join(folder, 'site.conf'), site)
  writeFileSync(
    join(folder, 'nginx.conf'),
    `worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log notice;
events { worker_connections 256; }
http {
    client_body_temp_path ${folder}/body;
    proxy_temp_path ${folder}/proxy;
    fastcgi_temp_path ${folder}/fastcgi;
    uwsgi_temp_path ${folder}/uwsgi;
    scgi_temp_path ${folder}/scgi;
    include ${folder}/site.conf;
}
`,
  )
  const args = ['-p', folder, '-e', join(folder, 'error.log'), '-c', join(folder, 'nginx.conf')]
  const { status, stderr } = spawnSync('nginx', [...args, '-t'], { encoding: 'utf8' })
  if (status !== 0 || stderr.includes('[warn]')) throw new Error(stderr)
  const child = spawn('nginx', [...args, '-g', 'daemon off;'], { stdio: 'ignore' })
  const exited = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await exited
  })
  await until('nginx runs', () => existsSync(join(folder, 'nginx.pid')))
  if (port !== undefined) await until('nginx listens', () => accepts(port))
}

const accepts = async (port: number): Promise<boolean> => {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } finally {
    socket.destroy()
  }
}
