// Promise 5: a tag names one body, and 304 comes for a tag of the same path, and for nothing else. The body of one path may be compressed
// in several ways, which share its weather; here all have been decoded. Of answers to HEAD more is in heads.ts.

import { headsAsGets } from './heads.ts'
import type { Rule } from './rule.ts'

export const tagsNameBodies: Rule = (facts, report) => {
  const bodies = new Map<string, string>()
  const tags = new Map<string, string>()
  const given = new Set<string>()
  const modified = new Map<string, string | undefined>()
  const { answers, pages, skewSpan } = facts
  for (const answer of [...answers, ...pages].toSorted((one, other) => one.seq - other.seq)) {
    const { status, headers, path, ifNoneMatch, body, method } = answer
    const tag = headers.etag
    if (status === 200 && tag) {
      if (ifNoneMatch !== undefined && weak(ifNoneMatch) === weak(tag))
        report.broken(answer, `it has ${tag}, which was sent along`)
      const known = bodies.get(tag)
      // An answer to HEAD has the tag of a body that it does not show.
      const isShown = method !== 'HEAD'
      if (known !== undefined) report.saw()
      if (isShown && known !== undefined && known !== body) report.broken(answer, `${tag} named another body`)
      const usual = isShown ? tags.get(body) : undefined
      if (usual !== undefined && usual !== tag) report.broken(answer, `${tag}, and this body had ${usual}`)
      if (isShown) {
        bodies.set(tag, body)
        tags.set(body, tag)
      }
      if (isShown && path.startsWith('/weather')) modified.set(tag, headers['last-modified'])
      given.add(`${path} ${weak(tag)}`)
    }
    const since = tag && modified.get(tag)
    if (since && apart(since, headers['last-modified']) > skewSpan)
      report.broken(answer, `${tag} was modified ${since} before, and ${headers['last-modified']} here`)
    if (status === 304) {
      report.saw()
      if (ifNoneMatch === undefined) report.broken(answer, 'nothing was to be validated')
      else if (tag && weak(tag) !== weak(ifNoneMatch))
        report.broken(answer, `for ${ifNoneMatch}, with ${tag}`)
      else if (!given.has(`${path} ${weak(ifNoneMatch)}`))
        report.broken(answer, `${ifNoneMatch} was never given for this path`)
    }
  }
  headsAsGets(facts, report, bodies)
}

const apart = (one: string, other: string | undefined): number =>
  Math.abs(Date.parse(one) - Date.parse(other ?? ''))

const weak = (tag: string): string => tag.replace(/^W\//, '')
