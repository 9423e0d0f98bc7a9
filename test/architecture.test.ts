// Checks the architecture: every import points to a lower rank or stays in its folder, and there are no import cycles. Only
// the commands that start the simulator import it, and it imports only the foundations and the facts of the protocol. Type
// imports count. It also checks headers and lengths, the sources of time and environment, and waits without a deadline.

import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..')

// Data runs down. Rooms of one rank do not import each other; `gateway.ts` is a room of one file, and `main.ts` the door of
// `cli`.
const ranks: Record<string, number> = {
  common: 0,
  catalogue: 1,
  stores: 1,
  weather: 1,
  config: 2,
  keys: 2,
  provider: 3,
  cache: 4,
  telemetry: 5,
  api: 6,
  operate: 6,
  gateway: 7,
  load: 7,
  cli: 8,
}

const simulator = 'tools/provider/'
const startsSimulator = ['tools/provider/cli/demo.ts', 'tools/provider/cli/provider.ts']

const files = globSync('{src,simulator}/**/*.ts', { cwd: root })
const ofGateway = files.filter(file => file.startsWith('src/'))
const ofSimulator = files.filter(file => file.startsWith(simulator))
const roomOf = (file: string): string => {
  const [, name = file] = file.split('/')
  return name === 'main.ts' ? 'cli' : name.replace(/\.ts$/, '')
}
const importsOf = (file: string): string[] =>
  [...readFileSync(join(root, file), 'utf8').matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+\.ts)'/g)].map(
    ([, path]) => relative(root, join(root, dirname(file), path ?? '')),
  )

t.test('every room has a rank, and every rank a room', t => {
  const rooms = new Set(ofGateway.map(roomOf))
  t.strictSame([...rooms].sort(), Object.keys(ranks).sort())
  t.end()
})

t.test('imports point to a lower rank or stay in the room', t => {
  let arrows = 0
  for (const file of ofGateway)
    for (const imported of importsOf(file)) {
      if (imported.startsWith(simulator)) continue
      arrows += 1
      const [from, to] = [roomOf(file), roomOf(imported)]
      const [rank = -1, target = 99] = [ranks[from], ranks[to]]
      if (from !== to && target >= rank)
        t.fail(`${file} (rank ${rank}) must not import ${imported} (rank ${target})`)
    }
  t.ok(arrows > 100, `${arrows} imports were looked at`)
  t.end()
})

t.test('the folders of a room do not import each other in a circle', t => {
  const arrows = new Map<string, Set<string>>()
  for (const file of ofGateway)
    for (const imported of importsOf(file)) {
      const [from, to] = [dirname(file), dirname(imported)]
      // The files of the room itself compose what is in its folders, and hold what these share.
      const areFolders = [from, to].every(folder => folder.split('/').length > 2)
      if (from === to || !areFolders || roomOf(file) !== roomOf(imported)) continue
      arrows.set(from, (arrows.get(from) ?? new Set()).add(to))
    }
  t.ok(arrows.size > 5, `${arrows.size} folders were looked at`)
  const visit = (folder: string, path: readonly string[]): void => {
    if (path.includes(folder)) t.fail([...path.slice(path.indexOf(folder)), folder].join(' → '))
    else for (const next of arrows.get(folder) ?? []) visit(next, [...path, folder])
  }
  for (const folder of arrows.keys()) visit(folder, [])
  t.end()
})

t.test('of the gateway, only the commands that start the simulator import it', t => {
  const importing = ofGateway.filter(file => importsOf(file).some(imported => imported.startsWith(simulator)))
  t.strictSame(importing.sort(), startsSimulator)
  t.end()
})

// Facts that both ends of the protocol share are written once.
const sharedProtocol = ['src/provider/open-meteo/limits.ts', 'src/weather/weather-variables.ts']
// What people read of the service, and no code acts on: where it may be shown.
const terms = 'src/provider/open-meteo/terms.ts'
const showsTerms = /^src\/(?:api\/reference\/document\.ts|load\/|cli\/serve\/demo\.ts)/

t.test('the simulator imports its own files, the foundations and the facts of the protocol', t => {
  t.ok(ofSimulator.length > 20, `${ofSimulator.length} files were looked at`)
  for (const file of ofSimulator)
    for (const imported of importsOf(file))
      if (
        !imported.startsWith(simulator) &&
        ranks[roomOf(imported)] !== 0 &&
        !sharedProtocol.includes(imported)
      )
        t.fail(`${file} must not import ${imported}`)
  t.end()
})

t.test('the protocol of the provider is known in its folder, and chosen in one place', t => {
  const folder = 'src/provider/open-meteo/'
  const allowed = (file: string, imported: string): boolean =>
    file.startsWith(folder) ||
    (file === 'src/provider/account.ts' && imported === `${folder}protocol.ts`) ||
    (file.startsWith(simulator) && sharedProtocol.includes(imported)) ||
    (imported === terms && showsTerms.test(file))
  let chosen = 0
  for (const file of files)
    for (const imported of importsOf(file).filter(path => path.startsWith(folder))) {
      if (file === 'src/provider/account.ts') chosen += 1
      if (!allowed(file, imported)) t.fail(`${file} must not import ${imported}`)
    }
  t.equal(chosen, 1)
  // A dependency on the protocol can also be written out, without an import.
  const words = /open-?meteo|minutely_15|v1\/forecast|meta\.json|location_id/i
  const free = files.filter(
    file =>
      /^src\/(provider|cache|telemetry|operate|gateway\.ts|api|load|cli)/.test(file) &&
      !file.startsWith(folder) &&
      file !== 'src/provider/account.ts',
  )
  t.ok(free.includes('src/provider/client.ts') && free.length > 50, `${free.length} files were looked at`)
  for (const file of free) {
    const found = words.exec(readFileSync(join(root, file), 'utf8').replaceAll(terms.slice(4), ''))?.[0]
    if (found !== undefined) t.fail(`${file} holds "${found}", a word of the protocol`)
  }
  t.end()
})

t.test('no file reaches itself through its imports', t => {
  const done = new Set<string>()
  const visit = (file: string, path: readonly string[]): void => {
    if (path.includes(file)) {
      t.fail(`a loop: ${[...path.slice(path.indexOf(file)), file].join(' → ')}`)
      return
    }
    if (done.has(file)) return
    for (const imported of importsOf(file)) visit(imported, [...path, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
  t.equal(done.size, files.length)
  t.end()
})

t.test('every file begins with a header comment', t => {
  const all = globSync('{src,simulator,test,bench,fuzz,proof}/**/*.{ts,js}', { cwd: root })
  const without = all.filter(file => {
    const [first = '', second = ''] = readFileSync(join(root, file), 'utf8').split('\n')
    return !(first.startsWith('#!') ? second : first).startsWith('// ')
  })
  t.ok(all.length > 800, `${all.length} files were looked at`)
  t.strictSame(without, [])
  t.end()
})

t.test('a file of more than 300 lines says why in its header', t => {
  let long = 0
  for (const file of globSync('{src,simulator,bench,fuzz,proof}/**/*.{ts,js,css}', { cwd: root })) {
    const text = readFileSync(join(root, file), 'utf8')
    if (text.split('\n').length - 1 <= 300) continue
    long += 1
    const [header = ''] = text.split('\n\n')
    t.match(header.replaceAll(/\s+(?:\/\/ )?/g, ' '), /Longer than 300 lines, because /, file)
  }
  t.ok(long > 10, `${long} files were looked at`)
  t.end()
})

t.test('the machine’s clock and environment are read in one place each', t => {
  const allowed: Record<string, RegExp> = {
    'src/common/clock.ts': /Date\.now\(\)/,
    'src/main.ts': /process\.env/,
    // In programs for consumers, as text.
    'tools/reference/samples.ts': /process\.env/,
  }
  for (const file of files) {
    const text = readFileSync(join(root, file), 'utf8')
    if (!allowed[file]?.source.includes('Date')) t.notMatch(text, /Date\.now\(\)|new Date\(\)/, file)
    if (!allowed[file]?.source.includes('env')) t.notMatch(text, /process\.env/, file)
  }
  t.end()
})

const projectFiles = globSync('{src,simulator,test,bench,fuzz,proof}/**/*.ts', { cwd: root })
// Support files that any benchmark may use; everything else shared with the tests is a scenario.
const supportOfBenchmarks = [
  'http2-client',
  'marked-part',
  'process',
  'program-path',
  'provider-process',
  'redis-server',
  'until',
].map(name => `test/support/${name}.ts`)
const mayImport: Record<string, (imported: string) => boolean> = {
  src: imported => /^(src|simulator)\//.test(imported),
  simulator: imported => /^(src|simulator)\//.test(imported),
  test: imported => !imported.startsWith('bench/'),
  bench: imported =>
    /^(src|simulator|bench|test\/scenarios)\//.test(imported) || supportOfBenchmarks.includes(imported),
  fuzz: imported => /^(src|simulator|fuzz|test\/(scenarios|support))\//.test(imported),
  proof: imported => /^(src|simulator|fuzz|proof|test\/(scenarios|support))\//.test(imported),
}

t.test('the product imports no tests or benchmarks, and tests import no benchmarks', t => {
  let arrows = 0
  for (const file of projectFiles)
    for (const imported of importsOf(file)) {
      arrows += 1
      const from = file.split('/')[0] ?? ''
      if (!mayImport[from]?.(imported)) t.fail(`${file} must not import ${imported}`)
    }
  t.ok(arrows > 300, `${arrows} imports were looked at`)
  t.end()
})

/** The loops of a file without a fixed number of rounds, as source text; the indentation shows where each ends. */
const endlessLoops = (text: string): string[] =>
  [...text.matchAll(/^( *)(?:\S.*)?\b(?:while \(|for \((?![^;\n]* of )[^;\n]*;[^;<>\n]*;)/gm)].map(
    ({ 0: head, 1: indent, index }) => {
      const rest = text.slice(index)
      const isBlock = /^.*\{$/m.exec(rest)?.index === 0
      const end = isBlock
        ? rest.indexOf(`\n${indent}}`)
        : rest.search(new RegExp(`\\n {0,${indent?.length ?? 0}}\\S`))
      return end < 0 ? head : rest.slice(0, end)
    },
  )
const waits =
  /^.*\b(?:while|for) \(.*\bawait\b|\b(?:setTimeout|setImmediate|pause|turn|nextTurn)\(|setImmediate\)/m
// Loops that have a deadline of their own, and background work that runs until the test ends it.
const noPolls: Record<string, RegExp> = {
  'fuzz/http/conversation.ts': /receivesWithin/,
  // The caller has a deadline of its own.
  'proof/fleet/sender.ts': /while \(!isOver\)/,
  'test/support/raw-connection.ts': /more\(/,

  'test/scenarios/rolling-restart.ts': /while \(!isOver\)/,
  'test/tools/catalogue/publication.test.ts': /while \(editing\)/,
}
const hasDeadline = /performance\.now\(\)|Date\.now\(\)/

t.test('every wait has a description and a deadline: test/support/until.ts', t => {
  const own = ['test/support/until.ts', 'test/architecture.test.ts']
  let loops = 0
  for (const file of projectFiles.filter(file => !file.startsWith('src/') && !own.includes(file)))
    for (const loop of endlessLoops(readFileSync(join(root, file), 'utf8'))) {
      loops += 1
      if (waits.test(loop) && !hasDeadline.test(loop) && !noPolls[file]?.test(loop))
        t.fail(`${file} waits without a deadline:\n${loop}`)
    }
  t.ok(loops > 20, `${loops} loops were looked at`)
  t.end()
})
