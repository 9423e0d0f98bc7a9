// Without it compose.yaml could name ports, paths and variables that do not fit together.

import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { endsWithinMs } from '../../src/cli/serve/supervisor.ts'
import { loadConfig } from '../../src/config/load.ts'
import { withoutPromtool } from '../support/promtool.ts'
import { replaced } from './nginx.ts'

const root = join(import.meta.dirname, '..', '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

type Service = {
  ports?: string[]
  volumes?: string[]
  environment?: Record<string, string>
  // biome-ignore lint/suspicious/noExplicitAny: what each test looks for
  [field: string]: any
}
const compose: { services: Record<string, Service>; volumes: object } = parse(read('compose.yaml'), {
  merge: true,
})
const usual = loadConfig({ files: [], env: {} })
const services = new Map(Object.entries(compose.services))
const gateways = [...services].filter(([name]) => name.startsWith('gateway-'))
const prometheus = parse(read('deploy/prometheus/prometheus.yml'))

/** Path on this machine and in the container, of what is mounted from the repository. */
const mountsOf = ({ volumes = [] }: Service): [from: string, to: string][] =>
  volumes.filter(volume => volume.startsWith('./')).map(volume => volume.split(':', 2) as [string, string])

t.test('every service is there, is pinned, and is reached from this machine alone', async t => {
  const published: string[] = []
  for (const [name, { image, build, depends_on = [], ports = [], volumes = [] }] of services) {
    const pinned = /^[a-z/]+(:v?\d+\.\d+\.\d+)?(@sha256:[0-9a-f]{64})?(?<=\d|@sha256:[0-9a-f]{64})$/
    if (image !== undefined) t.match(image, pinned, `${name} has the tag of one version, or a digest`)
    else t.ok(existsSync(join(root, build?.context ?? build, 'Dockerfile')))
    for (const other of depends_on) t.ok(services.has(other), `${name} needs ${other}`)
    for (const port of ports) {
      t.match(port, /^127\.0\.0\.1:\d+:\d+$/)
      published.push(port.split(':')[1] ?? '')
    }
    for (const volume of volumes)
      if (volume.startsWith('./')) t.ok(existsSync(join(root, volume.split(':')[0] ?? '-')), volume)
      else t.ok((volume.split(':')[0] ?? '') in compose.volumes, volume)
  }
  t.equal(new Set(published).size, published.length, 'no port is published twice')
  t.equal(gateways.length, 2)
  for (const [name, { stop_grace_period }] of gateways)
    t.ok(Number.parseInt(stop_grace_period, 10) * 1_000 > endsWithinMs(usual), `${name} is waited for`)
})

t.test('no service may more than an unprivileged process that writes to its volumes and /tmp', async t => {
  for (const [name, service] of services) {
    t.equal(service.read_only, true, `${name} has a root file system that can't be written`)
    t.strictSame(service.cap_drop, ['ALL'], `${name} has no capability`)
    t.strictSame([service.cap_add, service.privileged], [undefined, undefined])
    t.strictSame(service.security_opt, ['no-new-privileges:true'])
    t.match(service.user, /^[1-9]\d*:\d+$/, `${name} is no superuser`)
    for (const mount of service.tmpfs ?? []) t.match(mount, /^\/[\w/]+:size=\d+m,/, 'with a bound')
  }
})

t.test('the gateways’ variables pass the check, and their ports are the published ones', async t => {
  const dockerfile = read('Dockerfile')
  const [, block = ''] = /^ENV (NODE_ENV(?:.*\\\n)*.*)$/m.exec(dockerfile) ?? []
  const image = Object.fromEntries(
    [...block.matchAll(/(ABOHAWA_\w+)=(\S+)/g)].map(([, name, value]) => [name, value]),
  )
  t.ok(Object.keys(image).length > 2)
  for (const [name, { environment = {}, ports = [] }] of gateways) {
    const config = loadConfig({ files: [], env: { ...image, ...environment } })
    const targets = ports.map(port => Number(port.split(':')[2]))
    t.strictSame(targets, [config.server.port, config.health.port], name)
    t.ok(services.has(new URL(config.redis.url ?? '').hostname))
    const provider = new URL(config.provider.baseUrl)
    const { command, build } = services.get(provider.hostname) ?? {}
    t.match(command?.join(' '), `--port ${provider.port}`)
    t.equal(build?.target, 'tools', 'the gateway of an image has no provider')
    t.match(dockerfile, / AS tools$/m)
    t.ok(config.ops.allowedHosts.includes(name))
  }
})

t.test('Prometheus scrapes every gateway at its status port, and finds its rules', async t => {
  const [job] = prometheus.scrape_configs
  t.equal(job.job_name, 'abohawa')
  t.strictSame(
    job.static_configs[0].targets,
    gateways.map(([name, { environment }]) => `${name}:${environment?.ABOHAWA_HEALTH__PORT}`),
  )
  const mounts = new Map(mountsOf(services.get('prometheus') ?? {}).map(([from, to]) => [to, from]))
  // Where the image looks.
  t.equal(mounts.get('/etc/prometheus/prometheus.yml'), './deploy/prometheus/prometheus.yml')
  for (const file of prometheus.rule_files) t.ok(existsSync(join(root, mounts.get(file) ?? '-')), file)
})

t.test('promtool takes the file', { skip: withoutPromtool }, async t => {
  const alerts = { '/etc/prometheus/alerts.yaml': join(root, 'deploy/prometheus/alerts.yaml') }
  const text = replaced(read('deploy/prometheus/prometheus.yml'), alerts)
  const file = join(t.testdir({ 'prometheus.yml': text }), 'prometheus.yml')
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'config', file], { encoding: 'utf8' })
  t.equal(status, 0, stderr)
  t.match(stdout, /SUCCESS: \d+ rules found/)
})

t.test('Grafana gets Prometheus and the dashboard', async t => {
  const mounts = mountsOf(services.get('grafana') ?? {})
  const [source] = parse(read('deploy/grafana/provisioning/datasources/prometheus.yaml')).datasources
  const { hostname, port } = new URL(source.url)
  t.ok(services.has(hostname))
  t.equal(services.get(hostname)?.ports?.[0]?.split(':')[2], port)
  t.strictSame([source.type, source.isDefault], ['prometheus', true])
  const [provider] = parse(read('deploy/grafana/provisioning/dashboards/abohawa.yaml')).providers
  const [from] = mounts.find(([, to]) => to.startsWith(`${provider.options.path}/`)) ?? ['-']
  t.match(JSON.parse(read(from)), { uid: 'abohawa', title: /./ })
  t.match(read('compose.yaml'), `:3000/d/abohawa`)
  const provisioning = mounts.find(([, to]) => to === '/etc/grafana/provisioning')?.[0] ?? '-'
  for (const folder of ['datasources', 'dashboards'])
    t.ok(statSync(join(root, provisioning, folder)).isDirectory())
})
