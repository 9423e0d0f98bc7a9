// Reads a unit of systemd as far as tests of one need: the values of a setting in their order, and a command line of it as a
// process without anything of the test's environment.

/** All values of a setting, in their order. */
export const valuesOf = (unit: string, setting: string): string[] =>
  [...unit.matchAll(new RegExp(`^${setting}=(.*)$`, 'gm'))].map(([, value = '']) => value)

/** The one value of a setting. @throws Error when there is none, or several */
export const oneOf = (unit: string, setting: string): string => {
  const [value, ...more] = valuesOf(unit, setting)
  if (value === undefined || more.length > 0) throw new Error(`${setting}= is there ${more.length + 1} times`)
  return value
}

/** The variables of `Environment=`, and the ones that systemd itself gives. */
export const environmentOf = (unit: string): Record<string, string> => ({
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin',
  LANG: 'C.UTF-8',
  ...Object.fromEntries(
    valuesOf(unit, 'Environment').map(assignment => {
      const at = assignment.indexOf('=')
      return [assignment.slice(0, at), assignment.slice(at + 1)]
    }),
  ),
})
