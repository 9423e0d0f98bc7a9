// Certificates of an authority that openssl makes for the test: a root, one below it, a server's below that, and a stranger.

import { spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export const withoutOpenssl = spawnSync('openssl', ['version']).status === 0 ? false : 'openssl is missing'

type Name = 'root' | 'middle' | 'server' | 'stranger'

/** The server's lasts 30 days and names weather.example; the one above it lasts 10. @returns a file with these, in this order */
export const makeChain = (folder: string) => {
  const path = (name: string, end: string) => join(folder, `${name}.${end}`)
  const make = (name: Name, days: number, issuer?: Name, ...more: string[]) => {
    const { status, stderr } = spawnSync(
      'openssl',
      [
        ...'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'.split(' '),
        ...[
          '-days',
          String(days),
          '-subj',
          `/CN=${name}`,
          '-keyout',
          path(name, 'key'),
          '-out',
          path(name, 'crt'),
        ],
        ...(issuer ? ['-CA', path(issuer, 'crt'), '-CAkey', path(issuer, 'key')] : []),
        ...more,
      ],
      { encoding: 'utf8' },
    )
    if (status !== 0) throw new Error(stderr)
  }
  make('root', 100)
  make('middle', 10, 'root')
  make('server', 30, 'middle', '-addext', 'subjectAltName=DNS:weather.example')
  make('stranger', 100)
  chmodSync(path('server', 'key'), 0o600)
  const fileOf = (...names: Name[]): string => {
    const file = path(names.join('-'), 'pem')
    writeFileSync(file, names.map(name => readFileSync(path(name, 'crt'), 'utf8')).join(''))
    return file
  }
  return { key: path('server', 'key'), fileOf }
}
