"""`/admin/v2`: the part of Pulsar's admin API that rgd answers, so that an unchanged `pulsar-admin` works.

`routes` lists the calls; `resource_groups`, `attachments`, `rates`, `backlog_quotas` and `namespaces`
answer them. `places` reads what a path names, `jackson` reads numbers as Pulsar does, `bodies` has the
JSON that comes and goes, `rate_forms` turns it into limits and back.
"""
