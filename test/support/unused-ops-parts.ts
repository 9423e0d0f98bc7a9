// The parts of an ops listener whose routes a test does not use: a request for one of them fails.

const fail = () => {
  throw new Error('not used here')
}
const unused = async () => fail()

export const unusedOpsParts = {
  keys: { parts: fail, panel: unused, changed: () => {} },
  cache: {
    ...{ explain: unused, purge: unused, pricePurge: unused, refresh: unused },
    ...{ planWarm: unused, startWarm: unused, warmState: fail, stopWarm: unused },
  },
  status: {
    report: unused,
    cells: () => ({ at: '', cellDegrees: 1, cells: [] }),
    search: () => ({ places: [] }),
  },
  dashboard: { timeZone: 'UTC' },
}
