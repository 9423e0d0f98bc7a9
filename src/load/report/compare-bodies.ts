// Compares the bodies that two runs were answered with, by their digests: a line of JSON for each answer, with `path`, `status`
// and `digest`. A path is the same where both runs got the same statuses and bodies for it, in whatever order and number.

import { InputError, messageOf } from '../../errors.ts'
import { quoted } from '../../outside-text.ts'
import { maxFileBytes, readLines } from '../../regular-file.ts'

export type BodiesComparison = {
  readonly paths: number
  readonly same: number
  readonly different: number
  /** Paths of A without an answer in B, and the other way round. */
  readonly missingInB: number
  readonly missingInA: number
  /** The first ones of those that differ or are missing. */
  readonly examples: readonly {
    readonly path: string
    /** Statuses and digests, such as `200 5d41402abc4b`; empty where there was no answer. */
    readonly a: readonly string[]
    readonly b: readonly string[]
  }[]
}

const count = (value: number): string => value.toLocaleString('en-US')

/** What was found, in a sentence. */
export const bodiesSentence = ({
  paths,
  same,
  different,
  missingInA,
  missingInB,
}: BodiesComparison): string =>
  same === paths
    ? `All ${count(paths)} paths were answered alike.`
    : `Of ${count(paths)} paths ${count(same)} were answered alike; ${count(different)} differ, ${count(missingInB)} are missing in B, ${count(missingInA)} in A.`

type Bodies = ReadonlyMap<string, ReadonlySet<string>>

const maxExamples = 10

/** @throws InputError with file, line and what is wrong */
export const compareBodies = async (fileA: string, fileB: string): Promise<BodiesComparison> => {
  const [a, b] = [await readBodies(fileA), await readBodies(fileB)]
  const paths = [...new Set([...a.keys(), ...b.keys()])]
  const none: ReadonlySet<string> = new Set()
  const of = (bodies: Bodies, path: string): ReadonlySet<string> => bodies.get(path) ?? none
  const isSame = (path: string): boolean => of(a, path).symmetricDifference(of(b, path)).size === 0
  const others = paths.filter(path => !isSame(path))
  const missingInB = others.filter(path => !b.has(path)).length
  const missingInA = others.filter(path => !a.has(path)).length
  return {
    paths: paths.length,
    same: paths.length - others.length,
    different: others.length - missingInA - missingInB,
    missingInB,
    missingInA,
    examples: others
      .slice(0, maxExamples)
      .map(path => ({ path, a: [...of(a, path)].slice(0, 3), b: [...of(b, path)].slice(0, 3) })),
  }
}

const readBodies = async (file: string): Promise<Bodies> => {
  const bodies = new Map<string, Set<string>>()
  let [number, read] = [0, 0]
  try {
    for await (const line of readLines(file, maxFileBytes.line)) {
      number += 1
      read += line.length + 1
      if (read > maxFileBytes.digests)
        throw new InputError(
          `${file} is too large; allowed: at most ${maxFileBytes.digests.toLocaleString('en-US')} bytes`,
        )
      if (line.trim() === '') continue
      const { path, answer } = bodyIn(line, file, number)
      const known = bodies.get(path)
      if (known) known.add(answer)
      else bodies.set(path, new Set([answer]))
    }
  } catch (cause) {
    if (cause instanceof InputError) throw cause
    throw new InputError(`${file} cannot be read: ${messageOf(cause)}`, { cause })
  }
  return bodies
}

const bodyIn = (line: string, file: string, number: number): { path: string; answer: string } => {
  const allowed = 'allowed: {"path": "/…", "status": 200, "digest": "…"}'
  let fields: unknown
  try {
    fields = JSON.parse(line)
  } catch {
    throw new InputError(`line ${number} of ${file} is no JSON; ${allowed}`)
  }
  const { path, status, digest } = (fields ?? {}) as Record<string, unknown>
  if (typeof path !== 'string' || typeof status !== 'number' || typeof digest !== 'string')
    throw new InputError(`line ${number} of ${file} is ${quoted(line)}; ${allowed}`)
  return { path, answer: `${status} ${digest.slice(0, 16)}` }
}
