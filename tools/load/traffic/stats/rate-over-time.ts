// The request rate over time, in steps that double for longer traffic: bounded memory, exact counts.

type Peak = { readonly requests: number; readonly at: number }

const maxSteps = 240

export const createRateOverTime = () => {
  let begin: number | undefined
  let stepMs = 1_000
  let counts: number[] = []
  let second = Number.NaN
  let inSecond = 0
  let peak: Peak | null = null
  return {
    add: (at: number): void => {
      // Requests from before the first count in the first step.
      begin ??= Math.floor(at / 1_000) * 1_000
      let step = Math.max(0, Math.floor((at - begin) / stepMs))
      while (step >= maxSteps) {
        counts = Array.from(
          { length: Math.ceil(counts.length / 2) },
          (_, i) => (counts[2 * i] ?? 0) + (counts[2 * i + 1] ?? 0),
        )
        stepMs *= 2
        step = Math.floor((at - begin) / stepMs)
      }
      for (let i = counts.length; i <= step; i++) counts.push(0)
      counts[step] = (counts[step] ?? 0) + 1
      const present = Math.floor(at / 1_000)
      inSecond = present === second ? inSecond + 1 : 1
      second = present
      if (inSecond > (peak?.requests ?? 0)) peak = { requests: inSecond, at: present * 1_000 }
    },
    series: () => ({ stepSeconds: stepMs / 1_000, counts }),
    peak: (): Peak | null => peak,
  }
}
