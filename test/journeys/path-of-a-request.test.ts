// docs/path-of-a-request.md lists exactly the files that a warm hit executes. The test takes them from the engine's coverage
// of many hits.

import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { startProvider } from '../support/provider-process.ts'
import { startGateway } from '../support/start-gateway.ts'

const root = join(import.meta.dirname, '..', '..')
const source = `${pathToFileURL(join(root, 'src')).href}/`
// So many that no timer fires as often meanwhile, on a busy machine too.
const hits = 300

// Any file may use these.
const isFoundation = (file: string): boolean =>
  /^(calendar|clock|errors|outside-text|key-redaction|redacted-url)\.ts$/.test(file)

t.test('the page names the files of a warm hit', async t => {
  const provider = await startProvider(t)
  // One reading of the configuration calls some of its functions as often as all hits call theirs.
  const env = { ABOHAWA_CONFIG__WATCH: 'false' }
  const gateway = await startGateway(t, { providerUrl: provider.url, env })
  const sendRequest = async () => t.equal((await gateway.get('/weather/district/3026?lang=en')).status, 200)
  for (let i = 0; i < 20; i++) await sendRequest()
  const session = new Session()
  session.connect()
  t.teardown(() => session.disconnect())
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  await session.post('Profiler.takePreciseCoverage')
  for (let i = 0; i < hits; i++) await sendRequest()
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const passed = result
    .filter(({ url, functions }) => url.startsWith(source) && functions.some(isOfEveryHit))
    .map(({ url }) => decodeURIComponent(url.slice(source.length)))
    .filter(file => !isFoundation(file))
    .sort()
  const [, diagram = ''] =
    /```text\n(.*?)```/s.exec(readFileSync(join(root, 'docs/path-of-a-request.md'), 'utf8')) ?? []
  const named = [...diagram.matchAll(/^ *([a-z\d-]+(?:\/[a-z\d-]+)*\.ts)(?=[ \n])/gm)].map(([, file]) => file)
  t.strictSame(named.toSorted(), passed)
})

const isOfEveryHit = ({ ranges }: { ranges: { count: number }[] }): boolean => (ranges[0]?.count ?? 0) >= hits
