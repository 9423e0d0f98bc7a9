// Without it the Kubernetes manifests could name wrong ports, probes or paths, or hold a configuration that is refused.

import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import t from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { endsWithinMs } from '../../src/cli/serve/supervisor.ts'
import { loadConfig } from '../../src/config/load.ts'
import { freePort } from '../support/listening.ts'
import { runCommand, startCommand } from '../support/process.ts'
import { patientRedisEnv, testRedis } from '../support/redis-server.ts'
import { skipFileIf } from '../support/skip-file.ts'
import { replaced } from './nginx.ts'

const overlay = join(import.meta.dirname, '..', '..', 'deploy/kubernetes/overlays/example')
const built = spawnSync('kubectl', ['kustomize', overlay], { encoding: 'utf8', cwd: '/' })
skipFileIf(t, built.error !== undefined && 'needs kubectl on the path')
t.equal(built.status, 0, built.stderr)

// biome-ignore lint/suspicious/noExplicitAny: objects of every kind
type Resource = any
const resources: Resource[] = parseAllDocuments(built.stdout).map(document => document.toJS())
const named = (kind: string): Resource => {
  const found = resources.filter(resource => resource.kind === kind)
  t.equal(found.length, 1, `one ${kind}`)
  return found[0]
}
const { spec: deployment } = named('Deployment')
const { spec: pod, metadata: template } = deployment.template
const [gateway] = pod.containers
const file: string = named('ConfigMap').data['gateway.yaml']
const secret = named('Secret')
const token = 'f00dfeedfacedeadbeef0123456789abcdef0123456789abcdef'

/** The environment of the container, with the secrets in a folder of the test. */
const environmentIn = (folder: string, secrets: Record<string, string>): Record<string, string> => {
  mkdirSync(folder, { recursive: true })
  return Object.fromEntries(
    gateway.env.map(({ name, value }: { name: string; value: string }) => {
      if (!name.endsWith('__FILE')) return [name, value]
      const path = join(folder, basename(value))
      writeFileSync(path, `${secrets[basename(value)]}\n`)
      return [name, path]
    }),
  )
}

t.test('every object selects the pods of the deployment', async t => {
  const { labels } = template
  t.ok(Object.keys(labels).length > 0)
  t.strictSame(deployment.selector.matchLabels, labels)
  t.strictSame(named('Service').spec.selector, labels)
  t.strictSame(named('PodDisruptionBudget').spec.selector.matchLabels, labels)
  t.strictSame(named('NetworkPolicy').spec.podSelector.matchLabels, labels)
  t.strictSame(named('ServiceMonitor').spec.selector.matchLabels, named('Service').metadata.labels)
  for (const { labelSelector } of pod.topologySpreadConstraints)
    t.strictSame(labelSelector.matchLabels, labels)
  const { kind, name } = named('HorizontalPodAutoscaler').spec.scaleTargetRef
  t.strictSame([kind, name], ['Deployment', named('Deployment').metadata.name])
  const namespaces = resources
    .filter(({ kind }) => kind !== 'Namespace')
    .map(({ metadata }) => metadata.namespace)
  t.strictSame([...new Set(namespaces)], [named('Namespace').metadata.name])
  t.equal(named('Service').metadata.name, 'abohawa', 'the job that alerts and dashboard expect')
})

t.test('the pod is restricted, and its image has an exact tag or a digest', async t => {
  t.equal(pod.enableServiceLinks, false)
  t.equal(pod.automountServiceAccountToken, false)
  t.hasStrict(pod.securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
  t.hasStrict(gateway.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  t.notMatch(JSON.stringify(gateway.securityContext), /privileged":true|"add"/)
  t.notOk(gateway.lifecycle, 'no preStop')
  t.match(gateway.image, /^[\w./-]+(:v?\d+\.\d+\.\d+|@sha256:[0-9a-f]{64})$/)
})

t.test('the base trusts nobody, and does not start before an overlay names the ingress', async t => {
  const base = readFileSync(join(overlay, '../../base/gateway.yaml'), 'utf8')
  t.strictSame(parse(base).server.trustedProxies, [])
  const path = join(t.testdir({ 'gateway.yaml': base }), 'gateway.yaml')
  const { code, stderr } = await runCommand(['config', 'check', '--no-files', path])
  t.equal(code, 1)
  t.match(stderr, /server\.trustedProxies/)
  const named = gateway.env.find(({ name }: { name: string }) => name === 'ABOHAWA_SERVER__TRUSTED_PROXIES')
  const [, bits] = /^192\.0\.2\.0\/(\d+)$/.exec(named?.value) ?? []
  t.ok(Number(bits) >= 24, 'the example names a network that is nobody’s (RFC 5737)')
})

t.test('the file passes the check, and its ports and times are those of the objects', async t => {
  const folder = t.testdir({ 'gateway.yaml': file })
  const path = join(folder, 'gateway.yaml')
  const env = environmentIn(join(folder, 'secrets'), {
    'redis-url': 'redis://redis:6379',
    'ops-token': token,
  })
  const { code, stdout, stderr } = await runCommand(['config', 'check', '--no-files', path], env)
  t.strictSame([code, stdout, stderr], [0, 'The configuration is right.\n', ''])

  const config = loadConfig({ files: [path], env })
  const { server, ops, health } = config
  type Port = { name: string; containerPort: number }
  const ports = Object.fromEntries(
    gateway.ports.map(({ name, containerPort }: Port) => [name, containerPort]),
  )
  t.strictSame(ports, { api: server.port, health: health.port })
  t.equal(ops.host, '127.0.0.1', 'nothing outside of the pod reaches it')
  for (const { port, targetPort } of named('Service').spec.ports) {
    t.ok(targetPort in ports, targetPort)
    if (targetPort === 'health') t.equal(port, ports.health)
  }
  const allowed = named('NetworkPolicy').spec.ingress.flatMap((rule: Resource) => rule.ports)
  t.hasStrict(allowed, [{ port: 'api' }, { port: 'health' }])
  t.equal(allowed.length, 2)
  t.ok(pod.terminationGracePeriodSeconds * 1_000 > endsWithinMs(config))
  const { periodSeconds, failureThreshold } = gateway.readinessProbe
  // Longer than the kubelet takes to see it.
  t.ok(server.drainForMs > periodSeconds * failureThreshold * 1_000)
  const scaler = named('HorizontalPodAutoscaler').spec
  t.ok(scaler.minReplicas > named('PodDisruptionBudget').spec.maxUnavailable)
})

t.test('what is mounted is what the command line and the variables name', async t => {
  const mounts = new Map<string, string>(
    gateway.volumeMounts.map(({ name, mountPath }: Record<string, string>) => [mountPath, name]),
  )
  const volumes = new Map<string, Resource>(pod.volumes.map((volume: Resource) => [volume.name, volume]))
  const volumeOf = (path: string): Resource => volumes.get(mounts.get(dirname(path)) ?? '')
  const config = gateway.args[gateway.args.indexOf('--config') + 1]
  t.equal(volumeOf(config).configMap.name, named('ConfigMap').metadata.name)
  t.ok(basename(config) in named('ConfigMap').data)
  for (const { name, value } of gateway.env) {
    if (!name.endsWith('__FILE')) continue
    t.equal(volumeOf(value).secret.secretName, secret.metadata.name)
    t.ok(basename(value) in secret.data, value)
  }
})

t.test('the secrets of the example are refused', async t => {
  const folder = t.testdir({ 'gateway.yaml': file })
  const plain = (value: unknown) => Buffer.from(String(value), 'base64').toString().trim()
  const given = Object.fromEntries(Object.entries(secret.data).map(([name, value]) => [name, plain(value)]))
  const env = environmentIn(join(folder, 'secrets'), given)
  const { code, stderr } = await runCommand(['config', 'check', join(folder, 'gateway.yaml')], env)
  t.equal(code, 1)
  t.match(stderr, /redis\.url/)
  t.match(stderr, /ops\.token/)
})

t.test('a gateway started as the pod says answers each probe and the scrape at its path', async t => {
  const redis = await testRedis(t)
  const health = await freePort()
  const local = replaced(file, {
    'host: 0.0.0.0\n  port: 8080': 'host: 127.0.0.1\n  port: 0',
    'port: 9090': 'port: 0',
    'host: 0.0.0.0\n  port: 9091': `host: 127.0.0.1\n  port: ${health}`,
    'drainFor: 10s': 'drainFor: 0s',
  })
  const folder = t.testdir({ 'gateway.yaml': local })
  const env = environmentIn(join(folder, 'secrets'), { 'redis-url': redis.url, 'ops-token': token })
  const more = {
    ...patientRedisEnv,
    ABOHAWA_REDIS__PREFIX: redis.prefix,
    ABOHAWA_PROVIDER__BASE_URL: 'http://127.0.0.1:9',
  }
  const [command, ...options] = gateway.args as string[]
  t.equal(options[0], '--config')
  const args = [command ?? '', '--config', join(folder, 'gateway.yaml')]
  const { urls } = await startCommand(t, args, ['api', 'health'], { ...env, ...more })
  const { endpoints } = named('ServiceMonitor').spec
  const probes = ['startupProbe', 'livenessProbe', 'readinessProbe'].map(name => gateway[name].httpGet)
  for (const { path, port } of [...probes, ...endpoints]) {
    t.equal(port, 'health')
    t.equal((await fetch(`${urls.health}${path}`)).status, 200, path)
  }
})
