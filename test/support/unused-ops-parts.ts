// The parts of an ops listener whose routes a test does not use: a request for one of them fails.

const unused = () => Promise.reject(new Error('not used here'))

export const unusedOpsParts = {
  keys: {
    parts: () => {
      throw new Error('not used here')
    },
    changed: () => {},
  },
  cache: {
    explain: unused,
    purge: unused,
    refresh: unused,
    planWarm: unused,
    startWarm: unused,
    warmState: () => {
      throw new Error('not used here')
    },
    stopWarm: unused,
  },
  status: {
    report: unused,
    live: unused,
    cells: () => ({ cells: [] }),
    search: () => ({ places: [] }),
    isDraining: () => false,
  },
  dashboard: { timeZone: 'UTC' },
}
