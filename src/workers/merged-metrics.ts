// The expositions of several workers and of the process that started them as one: each sample of a worker has the label `worker`, and
// each metric its help once, as the format of Prometheus wants it. Nothing is summed: that is for queries.

/** All in the text format of Prometheus. @param own of the process that started them @param expositions by the number of the worker */
export const mergedMetrics = (own: string, expositions: ReadonlyMap<number, string>): string => {
  const metrics = new Map<string, { readonly head: string[]; readonly samples: string[] }>()
  for (const [worker, exposition] of [[undefined, own] as const, ...expositions]) {
    let current: { readonly head: string[]; readonly samples: string[] } = { head: [], samples: [] }
    let isNew = false
    for (const line of exposition.split('\n')) {
      const [, name] = /^# HELP (\S+)/.exec(line) ?? []
      if (name !== undefined) {
        const known = metrics.get(name)
        isNew = known === undefined
        current = known ?? { head: [], samples: [] }
        if (isNew) metrics.set(name, current)
      }
      if (line.startsWith('#')) {
        if (isNew) current.head.push(line)
      } else if (line !== '') current.samples.push(labelled(line, worker))
    }
  }
  return `${[...metrics.values()].map(({ head, samples }) => [...head, ...samples].join('\n')).join('\n\n')}\n`
}

const labelled = (sample: string, worker: number | undefined): string => {
  if (worker === undefined) return sample
  const end = sample.search(/[{ ]/)
  const [name, rest] = [sample.slice(0, end), sample.slice(end)]
  return rest.startsWith('{')
    ? `${name}{worker="${worker}"${rest.startsWith('{}') ? '' : ','}${rest.slice(1)}`
    : `${name}{worker="${worker}"}${rest}`
}
