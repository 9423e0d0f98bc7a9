// Certificates that openssl makes for a test: any one, and those of an authority: a root, one below it, a server's below that, and a
// stranger.

import { spawnSync } from 'node:child_process'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { without } from './programs.ts'

export const withoutOpenssl = without('openssl', 'openssl', 'version')

/** A certificate, by default signed by itself, and its key, in a folder. @param more arguments of openssl */
export const makeCertificate = (
  folder: string,
  name: string,
  days: number,
  ...more: readonly string[]
): { cert: string; key: string } => {
  const [cert, key] = [join(folder, `${name}.crt`), join(folder, `${name}.key`)]
  const args = [
    ...'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'.split(' '),
    ...['-days', String(days), '-subj', `/CN=${name}`, '-keyout', key, '-out', cert, ...more],
  ]
  const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return { cert, key }
}

/** The server's lasts 30 days and names weather.example; the one above it lasts 10. @returns a file with these, in this order */
export const makeChain = (folder: string) => {
  const signedBy = ({ cert, key }: { cert: string; key: string }) => ['-CA', cert, '-CAkey', key]
  const root = makeCertificate(folder, 'root', 100)
  const middle = makeCertificate(folder, 'middle', 10, ...signedBy(root))
  const names = ['-addext', 'subjectAltName=DNS:weather.example']
  const server = makeCertificate(folder, 'server', 30, ...signedBy(middle), ...names)
  const made = { root, middle, server, stranger: makeCertificate(folder, 'stranger', 100) }
  chmodSync(server.key, 0o600)
  const fileOf = (...chosen: (keyof typeof made)[]): string => {
    const file = join(folder, `${chosen.join('-')}.pem`)
    writeFileSync(file, chosen.map(name => readFileSync(made[name].cert, 'utf8')).join(''))
    return file
  }
  return { key: server.key, fileOf }
}
