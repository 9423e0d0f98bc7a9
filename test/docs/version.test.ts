// Without it a file could name another version than package.json, or the change log begin with another one.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'

const read = (file: string): string => readFileSync(join(import.meta.dirname, '..', '..', file), 'utf8')
const { version } = JSON.parse(read('package.json'))

t.test('every file names the same version', async t => {
  const lock = JSON.parse(read('package-lock.json'))
  t.strictSame([lock.version, lock.packages[''].version], [version, version])
  for (const [file, form] of [
    ['deploy/kubernetes/overlays/example/kustomization.yaml', /^ +newTag: (\S+)$/gm],
    ['Dockerfile', /image\.version=(\S+)/g],
    ['docs/operating/install.md', /(\d+\.\d+\.\d+)\+1a2b3c4d/g],
  ] as const)
    t.strictSame([...new Set([...read(file).matchAll(form)].map(([, named]) => named))], [version], file)
  t.equal(/^## (\d\S*)/m.exec(read('CHANGELOG.md'))?.[1], version)
})
