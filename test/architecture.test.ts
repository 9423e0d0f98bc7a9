// Without it an import could point to a higher rank, enter a room by another way than its own, or close a cycle; a header be missing,
// a file too long, a clock read elsewhere, or a wait have no deadline. Type imports count.

import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import t from 'tap'

const root = join(import.meta.dirname, '..')

// Data runs down. Rooms of one rank do not import each other; `gateway.ts` and `parts.ts` are rooms of one file, and `main.ts` is the
// door of `cli`.
const ranks: Record<string, number> = {
  common: 0,
  catalogue: 1,
  stores: 1,
  weather: 1,
  config: 2,
  keys: 2,
  'command-line': 3,
  provider: 3,
  cache: 4,
  telemetry: 5,
  api: 6,
  operate: 6,
  gateway: 7,
  parts: 7,
  cli: 8,
}

// What stands beside `src/` imports the gateway by its name, and so only what the map of package.json names; of that, each folder only
// what its row allows. The scripts of pages import what browsers find beside them.
const beside: Readonly<Record<string, RegExp>> = {
  'tools/common/': /^src\/(?:common|command-line)\//,
  'dashboard/': /^src\/(?:common\/page|operate\/reports)\//,
  'tools/catalogue/': /^src\/(?:common|config|catalogue|command-line)\//,
  'tools/load/':
    /^src\/(?:(?:common|config|catalogue|command-line|operate\/reports)\/|provider\/open-meteo\/terms\.ts|keys\/test-keys\.ts|weather\/(?:cell|ranges)\.ts)/,
  'tools/load/rehearsal/fixture.ts': /^src\/(?:(?:common|config)\/|parts\.ts)/,
  'tools/load/what-if/':
    /^src\/(?:(?:common|config|catalogue)\/|parts\.ts|provider\/open-meteo\/(?:limits|terms)\.ts)/,
  'tools/provider/':
    /^src\/(?:(?:common|command-line)\/|provider\/open-meteo\/(?:limits|terms)\.ts|weather\/weather-variables\.ts)/,
  'tools/reference/':
    /^src\/(?:(?:common|config|weather|catalogue)\/|api\/(?:parameters|sentences|problem)\.ts|keys\/rates\.ts|telemetry\/label-values\.ts|provider\/open-meteo\/terms\.ts)/,
}

const sources = '{src,tools,dashboard,test,bench,fuzz,proof}/**/*.{ts,js}'
const projectFiles = globSync(sources, { cwd: root })
const ofGateway = projectFiles.filter(file => file.startsWith('src/'))
const ofTools = projectFiles.filter(file => /^(?:tools|dashboard)\//.test(file))
const files = [...ofGateway, ...ofTools]
const roomOf = (file: string): string => {
  const [, name = file] = file.split('/')
  return name === 'main.ts' ? 'cli' : name.replace(/\.ts$/, '')
}

const { exports: named } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly exports: Readonly<Record<string, string>>
}
/** The file of a path behind `abohawa/`. */
const fileNamed = (path: string): string | undefined => {
  for (const [name, file] of Object.entries(named)) {
    if (name === `./${path}`) return file.slice(2)
    const [begin = '', end] = name.split('*')
    if (end !== undefined && `./${path}`.startsWith(begin))
      return file.slice(2).replace('*', `./${path}`.slice(begin.length))
  }
  return undefined
}

const importsOf = (file: string): string[] =>
  [
    ...readFileSync(join(root, file), 'utf8').matchAll(
      /(?:from|import)\s*\(?\s*'(?:(\.[^']+\.[tj]s)|abohawa\/([^']+))'/g,
    ),
  ].flatMap(([, path, name]) => {
    if (path !== undefined) return [relative(root, join(root, dirname(file), path))]
    return fileNamed(name ?? '') ?? []
  })
const imports = new Map(projectFiles.map(file => [file, importsOf(file)]))
const importedBy = (file: string): readonly string[] => imports.get(file) ?? []

/** Fails with each circle that is reached, as sentences of its arrows. */
const failAtCircles = (
  t: { fail(message: string): unknown },
  nodes: Iterable<string>,
  next: (node: string) => Iterable<string>,
  sentenceOf: (from: string, to: string) => string | undefined,
): void => {
  const done = new Set<string>()
  const visit = (node: string, path: readonly string[]): void => {
    if (path.includes(node)) {
      const circle = [...path.slice(path.indexOf(node)), node]
      t.fail(
        circle
          .slice(1)
          .map((to, i) => sentenceOf(circle[i] ?? '', to))
          .join('; '),
      )
      return
    }
    if (done.has(node)) return
    for (const each of next(node)) visit(each, [...path, node])
    done.add(node)
  }
  for (const node of nodes) visit(node, [])
}

t.test('every room has a rank, and every rank a room', t => {
  const rooms = new Set(ofGateway.map(roomOf))
  t.strictSame([...rooms].sort(), Object.keys(ranks).sort())
  t.end()
})

t.test('imports of the gateway point to a lower rank or stay in the room', t => {
  let arrows = 0
  for (const file of ofGateway)
    for (const imported of importedBy(file)) {
      arrows += 1
      if (!imported.startsWith('src/')) {
        t.fail(`${file} must not import ${imported}`)
        continue
      }
      const [from, to] = [roomOf(file), roomOf(imported)]
      const [rank = -1, target = 99] = [ranks[from], ranks[to]]
      if (from !== to && target >= rank)
        t.fail(`${file} (rank ${rank}) must not import ${imported} (rank ${target})`)
    }
  t.ok(arrows > 100, `${arrows} imports were looked at`)
  t.end()
})

t.test('what stands beside the gateway imports what its row names, and no other tool', t => {
  let arrows = 0
  for (const file of ofTools) {
    const [folder, row] =
      Object.entries(beside)
        .filter(([folder]) => file.startsWith(folder))
        .at(-1) ?? []
    for (const imported of importedBy(file)) {
      arrows += 1
      const own = `${file
        .split('/')
        .slice(0, folder === 'dashboard/' ? 1 : 2)
        .join('/')}/`
      if (
        !imported.startsWith(own) &&
        !(file.startsWith('tools/') && imported.startsWith('tools/common/')) &&
        !row?.test(imported)
      )
        t.fail(`${file} must not import ${imported}`)
    }
  }
  t.ok(arrows > 300, `${arrows} imports were looked at`)
  const used = new Set(ofTools.flatMap(importedBy))
  for (const [name, file] of Object.entries(named))
    t.ok(file.includes('*') || used.has(file.slice(2)), `${name} of package.json is imported`)
  t.end()
})

t.test('folders of a room and the files beside them import each other in no circle', t => {
  // A folder is one thing here: what a folder imports must not lead back into it.
  const nodeOf = (file: string): string => (dirname(file).split('/').length > 2 ? dirname(file) : file)
  const arrows = new Map<string, Map<string, string>>()
  for (const file of ofGateway)
    for (const imported of importedBy(file)) {
      const [from, to] = [nodeOf(file), nodeOf(imported)]
      if (from === to || roomOf(file) !== roomOf(imported)) continue
      const ofNode = arrows.get(from) ?? new Map<string, string>()
      arrows.set(from, ofNode.set(to, `${file} imports ${imported}`))
    }
  t.ok(arrows.size > 50, `${arrows.size} files and folders were looked at`)
  failAtCircles(
    t,
    arrows.keys(),
    node => arrows.get(node)?.keys() ?? [],
    (from, to) => arrows.get(from)?.get(to),
  )
  t.end()
})

t.test('the protocol of the provider is known in its folder, and chosen in one place', t => {
  const folder = 'src/provider/open-meteo/'
  const allowed = (file: string, imported: string): boolean =>
    file.startsWith(folder) ||
    (file === 'src/provider/account.ts' && imported === `${folder}protocol.ts`) ||
    // What else stands beside the gateway has a row of its own.
    file.startsWith('tools/')
  let chosen = 0
  for (const file of files)
    for (const imported of importedBy(file).filter(path => path.startsWith(folder))) {
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
    const found = words.exec(readFileSync(join(root, file), 'utf8'))?.[0]
    if (found !== undefined) t.fail(`${file} holds "${found}", a word of the protocol`)
  }
  t.end()
})

t.test('no file reaches itself through its imports', t => {
  t.ok(projectFiles.length > 800, `${projectFiles.length} files were looked at`)
  failAtCircles(t, projectFiles, importedBy, (from, to) => `${from} imports ${to}`)
  t.end()
})

t.test('every file begins with a header comment', t => {
  const without = projectFiles.filter(file => {
    const [first = '', second = ''] = readFileSync(join(root, file), 'utf8').split('\n')
    return !(first.startsWith('#!') ? second : first).startsWith('// ')
  })
  t.strictSame(without, [])
  t.end()
})

t.test('a file of more than 300 lines says why in its header', t => {
  let long = 0
  for (const file of globSync('{src,tools,dashboard,bench,fuzz,proof}/**/*.{ts,js,css}', { cwd: root })) {
    const text = readFileSync(join(root, file), 'utf8')
    if (text.split('\n').length - 1 <= 300) continue
    long += 1
    const [header = ''] = text.split('\n\n')
    t.match(header.replaceAll(/\s+(?:\/\/ )?/g, ' '), /Longer than 300 lines, because /, file)
  }
  t.ok(long > 5, `${long} files were looked at`)
  t.end()
})

t.test('the machine’s clock and environment are read in one place each', t => {
  const allowed: Record<string, RegExp> = {
    'src/common/clock.ts': /Date\.now\(\)/,
    'src/main.ts': /process\.env/,
    // In programs for consumers, as text.
    'tools/reference/samples.ts': /process\.env/,
  }
  for (const file of files.filter(file => file.endsWith('.ts'))) {
    const text = readFileSync(join(root, file), 'utf8')
    if (!allowed[file]?.source.includes('Date')) t.notMatch(text, /Date\.now\(\)|new Date\(\)/, file)
    if (!allowed[file]?.source.includes('env')) t.notMatch(text, /process\.env/, file)
  }
  t.end()
})

// Support files that any benchmark may use; everything else shared with the tests is a scenario.
const supportOfBenchmarks = [
  'gateway-env',
  'http2-client',
  'listening',
  'manual-clock',
  'proc',
  'process',
  'programs',
  'provider',
  'redis-server',
  'start-gateway',
  'teardown',
  'until',
]
  .map(name => `test/support/${name}.ts`)
  .concat('fuzz/marked-part.ts', 'fuzz/http/response-reader.ts')
const mayImport: Record<string, (imported: string) => boolean> = {
  test: imported => !imported.startsWith('bench/'),
  bench: imported =>
    /^(src|tools|bench|test\/scenarios)\//.test(imported) || supportOfBenchmarks.includes(imported),
  fuzz: imported => /^(src|tools|fuzz|test\/(scenarios|support))\//.test(imported),
  proof: imported => /^(src|tools|fuzz|proof|test\/(scenarios|support|runner))\//.test(imported),
}

t.test('tests import no benchmarks, and benchmarks, fuzz and proof only what is for them', t => {
  let arrows = 0
  for (const file of projectFiles.filter(file => !files.includes(file)))
    for (const imported of importedBy(file)) {
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
}
const hasDeadline = /performance\.now\(\)|Date\.now\(\)/

t.test('every wait has a description and a deadline: test/support/until.ts', t => {
  const own = ['test/support/until.ts', 'test/architecture.test.ts']
  let loops = 0
  for (const file of projectFiles.filter(file => !files.includes(file) && !own.includes(file)))
    for (const loop of endlessLoops(readFileSync(join(root, file), 'utf8'))) {
      loops += 1
      if (waits.test(loop) && !hasDeadline.test(loop) && !noPolls[file]?.test(loop))
        t.fail(`${file} waits without a deadline:\n${loop}`)
    }
  t.ok(loops > 20, `${loops} loops were looked at`)
  t.end()
})
