-- Health of a DeadlineJob for Argo CD: the value of the key
-- resource.customizations.health.shed.dev_DeadlineJob in the ConfigMap argocd-cm.
-- docs/how-to/gitops.md shows how to install it.
local found = {}
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    if condition.status == "True" then
      found[condition.type] = condition
    end
  end
end

local function health(status, text)
  return { status = status, message = text }
end

local function because(condition)
  return condition.reason .. ": " .. (condition.message or "")
end

if found.Failed then
  return health("Degraded", because(found.Failed))
end
if found.Complete then
  if found.DeadlineMissed then
    return health("Healthy", "complete after its deadline")
  end
  return health("Healthy", "complete")
end
if found.Suspended then
  return health("Suspended", because(found.Suspended))
end
if obj.spec ~= nil and obj.spec.suspend == true then
  return health("Suspended", "spec.suspend is true")
end

-- The first of these explains best why the job is not complete.
for _, kind in ipairs({ "Quarantined", "AttemptsBlocked", "DeadlineMissed", "DeadlineAtRisk", "TasksPending" }) do
  if found[kind] then
    return health("Progressing", because(found[kind]))
  end
end
return health("Progressing", "not complete yet")
