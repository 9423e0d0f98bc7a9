// Variables that many gateways of tests have.

/** Listeners on free ports, and an end that waits for no balancer. */
export const onFreePorts = {
  ABOHAWA_SERVER__PORT: '0',
  ABOHAWA_SERVER__DRAIN_FOR: '0s',
  ABOHAWA_OPS__PORT: '0',
}

/** No limits of the provider. */
export const noBudget = {
  ABOHAWA_PROVIDER__BUDGET__PER_MINUTE: '',
  ABOHAWA_PROVIDER__BUDGET__PER_HOUR: '',
  ABOHAWA_PROVIDER__BUDGET__PER_DAY: '',
}

export const plentyOfQuota = { ABOHAWA_QUOTA__TIERS__ENTERPRISE: '1000000000' }
