"""The pages of the area 'Administration': of the tenant by whoever administers it, of the tenants by the operator."""
