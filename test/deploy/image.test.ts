// Without it the image could lack files or packages, run as root, or compile anew at every start.

import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { freePort } from '../support/listening.ts'
import { startProgram } from '../support/process.ts'
import { replaced } from './nginx.ts'

const root = join(import.meta.dirname, '..', '..')
// Continued lines are one.
const dockerfile = readFileSync(join(root, 'Dockerfile'), 'utf8').replace(/\\\n/g, ' ')
const stepsOf = (text: string) =>
  [...text.matchAll(/^([A-Z]+) (.*)$/gm)].map(([, step = '', text = '']) => ({ step, text }))
const [ofGateway = '', ofTools = '', ofLast = ''] = dockerfile.split(/^FROM gateway AS \w+$/m)
const steps = stepsOf(ofGateway)
const { version, devDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const all = (step: string) => steps.filter(each => each.step === step).map(({ text }) => text)

// Not within this repository, where Node would find packages of development in a folder above.
const folder = mkdtempSync(join(tmpdir(), 'abohawa-image-'))
t.teardown(() => rmSync(folder, { recursive: true }))
for (const name of ['app', 'data', 'cache', 'tmp', 'path', 'links', 'elsewhere'])
  mkdirSync(join(folder, name))
const at = (name: string) => join(folder, name)
symlinkSync(process.execPath, at('path/node'))
const clean = { PATH: `${at('path')}:/usr/local/bin:/usr/bin:/bin`, HOME: folder }

/** The variables of ENV up to a step, with this folder in place of the image's root. */
const variables = (upTo: number): Record<string, string> =>
  Object.fromEntries(
    steps
      .slice(0, upTo)
      .filter(({ step }) => step === 'ENV')
      .flatMap(({ text }) => [...text.matchAll(/(\w+)=(\S+)/g)])
      .map(([, name = '', value = '']) => [name, value.replace(/^\/(cache|data)/, `${folder}/$1`)]),
  )
const run = (text: string, env: Record<string, string>) =>
  spawnSync('sh', ['-c', replaced(text, text.includes('/tmp/') ? { '/tmp/': `${at('tmp')}/` } : {})], {
    cwd: at('app'),
    env,
    encoding: 'utf8',
  })

const ignored = readFileSync(join(root, '.dockerignore'), 'utf8').split('\n')
/** Copies what is not from another stage. */
const copy = (t: Test, copied: readonly string[]): void => {
  for (const text of copied.filter(line => !line.startsWith('--from='))) {
    const [target = '', ...sources] = text.split(' ').reverse()
    for (const source of sources) {
      t.ok(ignored.includes(`!${source}`), `${source} is in the context`)
      const to = sources.length > 1 || target === './' ? source : target
      cpSync(join(root, source), join(at('app'), to), { recursive: true })
    }
  }
}
/** With the packages of the cache of this machine, which the installation of the tests has filled. */
const install = (command: string) => {
  const cache = process.env.npm_config_cache ?? join(process.env.HOME ?? '', '.npm')
  // A registry behind a proxy may have a certificate of its own.
  const { NODE_EXTRA_CA_CERTS: certificates } = process.env
  const trusted = certificates === undefined ? {} : { NODE_EXTRA_CA_CERTS: certificates }
  return run(`${command} --prefer-offline`, { ...clean, ...trusted, npm_config_cache: cache })
}

t.test('every copied file is there, and is in the context of the build', async t => {
  t.equal(ignored[0], '*')
  copy(t, all('COPY'))
})

t.test('image and page have the exact Node of the tests, and no superuser runs it', async t => {
  t.match(devDependencies.node, /^\d+\.\d+\.\d+$/)
  for (const text of all('FROM')) {
    const [image = ''] = text.split(' ')
    t.match(image.replace(/@sha256:[0-9a-f]{64}$/, ''), new RegExp(`^node:${devDependencies.node}-slim$`))
  }
  const page = readFileSync(join(root, 'docs/operating/install.md'), 'utf8')
  for (const said of [
    `imagetools inspect node:${devDependencies.node}-slim`,
    `release=v${devDependencies.node} `,
    'sha256sum --check',
  ])
    t.match(page, said)
  t.equal(steps.findLast(({ step }) => step === 'USER')?.text, 'node')
})

t.test('npm ci --omit=dev installs what production needs', async t => {
  const [command = ''] = all('RUN')
  t.equal(command, 'npm ci --omit=dev')
  const { status, stderr } = install(command)
  t.equal(status, 0, stderr)
  for (const absent of ['.bin/node', 'typescript', 'hdr-histogram-js'])
    t.notOk(existsSync(at(`app/node_modules/${absent}`)), absent)
  t.notOk(existsSync(at('app/tools')))
})

t.test('the commit of the build is beside the version, and without one the number alone', async t => {
  const step = all('RUN').find(text => text.endsWith('> commit')) ?? ''
  for (const [commit, shown] of [
    ['0123456789abcdef0123456789abcdef01234567', `${version}+01234567\n`],
    ['', `${version}\n`],
  ] as const) {
    t.equal(run(step, { ...clean, COMMIT: commit }).status, 0)
    t.equal(run('bin/abohawa --version', clean).stdout, shown)
  }
})

t.test('the warm-up ends by itself, and leaves what every later start reads', async t => {
  const index = steps.findIndex(({ step, text }) => step === 'RUN' && text.includes('bin/abohawa serve'))
  const warmUp = steps[index]?.text ?? ''
  t.notMatch(warmUp, /timeout|sleep [1-9]/, 'nothing in it is over after some time')
  t.match(warmUp, /serve --config /, 'or what reads config files is compiled at every start')
  const ports = {
    ABOHAWA_SERVER__PORT: String(await freePort()),
    ABOHAWA_OPS__PORT: String(await freePort()),
  }
  const { status, stderr } = run(warmUp, { ...variables(index), ...clean, ...ports })
  t.strictSame([status, stderr], [0, ''])
  const compiled = readdirSync(at('cache'), { recursive: true })
  t.ok(compiled.length > 500, `${compiled.length} files are compiled`)

  const failing = run(warmUp, { ...variables(index), ...clean, ...ports, ABOHAWA_SERVER__PORT: 'x' })
  t.not(failing.status, 0, 'a start that fails fails the build, and does not wait')
})

/** Starts the entry point with what follows, and waits until it serves. */
const startImage = async (t: Test, args: string[]) => {
  const env = {
    ...variables(steps.length),
    ...clean,
    ABOHAWA_SERVER__PORT: '0',
    ABOHAWA_OPS__PORT: String(await freePort()),
    ABOHAWA_SERVER__HOST: '127.0.0.1',
    ABOHAWA_SERVER__DRAIN_FOR: '0s',
    ABOHAWA_PROVIDER__BASE_URL: 'http://127.0.0.1:9',
  }
  const [entry = ''] = JSON.parse(all('ENTRYPOINT')[0] ?? '[]')
  const command = join(at('app'), entry)
  return { ...(await startProgram(t, [command, ...args], ['api'], { cwd: at('app'), env })), env }
}

t.test('the entry point serves, the health check agrees, and the store is on the volume', async t => {
  const { child, exited, env } = await startImage(t, JSON.parse(all('CMD')[0] ?? '[]'))
  const [, json = '[]'] = /CMD (\[.*\])$/.exec(all('HEALTHCHECK')[0] ?? '') ?? []
  const [command = '', ...args] = JSON.parse(json)
  t.equal(spawnSync(command, args, { env }).status, 0, 'healthy')
  t.ok(existsSync(at('data/abohawa.db')))
  child.kill('SIGTERM')
  t.equal(await exited, 0)
  t.equal(spawnSync(command, args, { env }).status, 1, 'and not when it has ended')
})

t.test('the command works from any folder: by its path, through links, and on the path', async t => {
  const env = { ...clean, PATH: `${at('links')}:${clean.PATH}` }
  const elsewhere = (command: string, args: string[]) =>
    spawnSync(command, args, { cwd: at('elsewhere'), env, encoding: 'utf8' })
  mkdirSync(at('links/deeper'))
  symlinkSync(at('app/bin/abohawa'), at('links/abohawa'))
  // A relative link to a link, as package managers make them.
  symlinkSync('../abohawa', at('links/deeper/abohawa'))
  for (const command of [at('app/bin/abohawa'), '../app/bin/abohawa', '../links/deeper/abohawa', 'abohawa']) {
    const { status, stdout, stderr } = elsewhere(command, ['--version'])
    t.strictSame([status, stdout, stderr], [0, `${version}\n`, ''], command)
  }
})

t.test(
  'the target with the tools has what they need; the last stage adds nothing to the gateway',
  async t => {
    t.strictSame(stepsOf(ofLast), [])
    t.match(run('bin/abohawa replay --help', clean), { status: 1, stderr: /this installation has no tools/ })
    const added = stepsOf(ofTools)
    const those = (step: string) => added.filter(each => each.step === step).map(({ text }) => text)
    copy(t, those('COPY'))
    const [command = ''] = those('RUN')
    const packages = [...command.matchAll(/ ([\w-]+)@([\d.]+)/g)].map(([, name = '', exact]) => [name, exact])
    t.strictSame(
      packages,
      packages.map(([name = '']) => [name, devDependencies[name]]),
    )
    const { status, stderr } = install(command)
    t.equal(status, 0, stderr)
    t.strictSame(those('USER'), ['root', 'node'])
    for (const args of ['replay', 'whatif', 'rehearse', 'demo', 'provider'].map(name => `${name} --help`))
      t.hasStrict(run(`bin/abohawa ${args}`, clean), { status: 0, stderr: '' }, args)
    t.match(run('bin/abohawa catalogue check', clean), { status: 0 }, 'it finds its own catalogue')
  },
)
